"""Decompositions of composite operators into operators that have quantized forms: one file each."""
