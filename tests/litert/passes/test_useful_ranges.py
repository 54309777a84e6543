"""Ranges end where all readers of a tensor take no more notice of its values."""

from __future__ import annotations

import pytest

from openneutron.litert import DType, Graph
from openneutron.litert.build import GraphBuilder
from openneutron.litert.passes.useful_ranges import useful_ranges

SEEN = {"x": (-50.0, 50.0), "y": (-40.0, 5.0), "z": (-0.4, 5.0)}


def graph(*readers: str, output: bool = False) -> Graph:
    g = GraphBuilder()
    x, y = (g.tensor(name, (1, 4), DType.FLOAT32) for name in "xy")
    g.op("NEG", [x], [y])
    ends = []
    for at, code in enumerate(readers):
        ends.append(g.tensor("z" if not at else f"z{at}", (1, 4), DType.FLOAT32))
        g.op(code, [y], [ends[-1]])
    return g.finish([x], [*ends, *([y] if output else [])]).main


@pytest.mark.parametrize(
    ("readers", "wanted"),
    [
        (("HARD_SWISH",), (-3.0, 5.0)),
        (("LOGISTIC",), (-8.0, 5.0)),
        (("HARD_SWISH", "TANH"), (-4.0, 5.0)),
        (("HARD_SWISH", "NEG"), (-40.0, 5.0)),
    ],
)
def test_a_range_is_cut_to_what_readers_notice(readers: tuple[str, ...], wanted: tuple[float, float]) -> None:
    found = useful_ranges(graph(*readers), SEEN)
    assert found == {**SEEN, "y": wanted}


def test_outputs_keep_their_range() -> None:
    assert useful_ranges(graph("RELU", output=True), SEEN) == SEEN
