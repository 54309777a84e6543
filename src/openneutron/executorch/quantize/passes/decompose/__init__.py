"""Composite operators as those that have quantized forms: one file each."""
