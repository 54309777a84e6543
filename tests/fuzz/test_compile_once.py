"""The compile fuzzer on a few models; `make fuzz-compile` runs it for as long as one likes."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.compile_once import compile_once


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_models(data: st.DataObject) -> None:
    compile_once(data)
