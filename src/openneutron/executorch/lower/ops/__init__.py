"""Operators: one file each, which registers in `executorch/operators.py` how its ATen forms are annotated and how its Edge
forms are lowered.

Adding an operator adds `ops/<op>.py` and `tests/executorch/lower/ops/test_<op>.py`; no list changes: files are found by name.
"""
