"""Words on a terminal: what a user sees, what is kept quiet, how sizes are written, and the filter for text that leaves."""
