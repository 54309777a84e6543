"""Recognition of operators that a model writes out, by what they compute: one file each.

Written out, each intermediate value would be rounded to the quantized type; a single operator rounds only its result. A
single-input part of the graph is evaluated in double precision on samples, and replaced if it equals the operator on all.
"""
