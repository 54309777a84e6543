"""What the server imports that workers are forked from (`openneutron.sweeps.forking`)."""
