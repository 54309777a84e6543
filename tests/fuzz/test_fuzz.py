"""A short walk of the fuzzer in every test run; `make fuzz` walks for ten minutes."""

from __future__ import annotations

from collections import Counter

import pytest

from openneutron.convert import convert
from openneutron.options import Options
from tests.fuzz.fuzz import attempt, case
from tests.fuzz.seeds import seeds


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_damaged_models_are_compiled_or_refused(first: int) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(first, first + 50):
        outcome, text = attempt(case(0, number, ""))
        assert outcome != "finding", f"seed 0, case {number}: {text}"
        outcomes[outcome] += 1
    assert outcomes["compiled"] > 3 and outcomes["refused"] > 10


def test_a_case_is_the_same_every_time() -> None:
    for number in range(20):
        one, two = case(3, number, ""), case(3, number, "")
        assert (one.name, one.data, one.options) == (two.name, two.data, two.options)
    assert case(3, 0, "").data != case(4, 0, "").data


@pytest.mark.parametrize("name", sorted(seeds()))
def test_what_mutation_starts_from_compiles(name: str) -> None:
    assert convert(seeds()[name], Options(source=name)).model


def test_seeds_cover_the_operators() -> None:
    codes = {
        op.code
        for name, data in seeds().items()
        for op in convert(data, Options(source=name)).report.operators
        if op.converted
    }
    from openneutron.compiler import kernels

    # The composite is our own way to write a table, from PyTorch only.
    assert set(kernels.rules()) - codes <= {"STABLEHLO_COMPOSITE"}
