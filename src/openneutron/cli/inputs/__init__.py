"""What a command line names, read: models, microcode, arrays, sound, labelled data."""
