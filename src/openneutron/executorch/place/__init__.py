"""What the CPU costs, which engine runs what, and the whole program's time and memory."""
