"""Training is quick here: see `tests/patterns.py`."""

from tests.patterns import patterns_once as patterns_once
