"""Operators: each file registers in `executorch/operators.py` how the quantizer annotates ATen operators, and how
Edge operators become LiteRT operators.

Adding an operator adds `ops/<op>.py` and `tests/executorch/lower/ops/test_<op>.py`: all files of this folder are imported.
Operators that differ only in a name share a file with a table from ATen name to LiteRT operator (`unary.py`, `minmax.py`,
`reduce.py`, `argminmax.py`). Files that begin with `_` are helpers and register nothing.
"""
