"""Reference results of the float model, and the parts of an output that are measured."""
