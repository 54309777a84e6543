"""`openneutron board`: ask a board what a model does on it, compare its bytes, and learn from its times."""
