"""Operators that a model writes out, recognised by what they compute: one file each.

Written out, each intermediate value would be rounded to the quantized type; as one operator only its result is. A stretch of
the graph from one tensor to another is evaluated in double precision on samples, and replaced where no sample tells it from
the operator.
"""
