"""Replacements of operators by equivalent ones that can be quantized: one file each."""
