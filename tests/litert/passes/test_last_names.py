"""The layers before the outputs, and what only reorders their results."""

from __future__ import annotations

from openneutron.litert import DType
from openneutron.litert.build import GraphBuilder
from openneutron.litert.passes.last_names import last_names


def test_views_and_logistic_functions_are_seen_through() -> None:
    g = GraphBuilder()
    x, inner, scores, flat, share, other = (
        g.tensor(name, (1, 4), DType.FLOAT32) for name in ("x", "inner", "scores", "flat", "share", "other")
    )
    g.op("RELU", [x], [inner])
    g.op("NEG", [inner], [scores])
    g.op("RESHAPE", [scores], [flat], new_shape=[1, 4])
    g.op("LOGISTIC", [flat], [share])
    g.op("ABS", [inner], [other])
    assert last_names(g.finish([x], [share, other]).main) == {"share", "flat", "scores", "other"}
