"""Operators in other words, so that they can be quantized: one file each."""
