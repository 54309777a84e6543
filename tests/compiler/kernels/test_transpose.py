"""transpose: any permutation up to rank six, at 0 LSB."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openneutron.compiler.front.legalize import legalize
from openneutron.litert.graph import DType
from openneutron.machine import targets
from tests.compiler.kernels.moving import MOVED, add_move, fresh, reason, shapes
from tests.compiler.kernels.test_views import negated
from tests.golden import seeds
from tests.sampling import examples


@examples(100)
@given(st.data())
def test_any_permutation(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(6):
        shape = data.draw(shapes(1, 6))
        order = data.draw(st.permutations(range(len(shape))))
        add_move(maker, "TRANSPOSE", shape, [shape[axis] for axis in order], [order], data.draw(MOVED))
    maker.check()


def test_moving_ones_is_a_view() -> None:
    maker = fresh()
    y = maker.output((1, 8, 1, 1), DType.INT8, 0.1, 0)
    order = maker.constant([0, 3, 1, 2], DType.INT32)
    maker.op("TRANSPOSE", [negated(maker, (1, 1, 1, 8)), order], y)
    graph = legalize(maker.model().main, targets.load("imxrt700"))
    assert [node.kernel for node in graph.nodes] == ["lut"]
    maker.check()


def test_refusals() -> None:
    assert "permutation [0, 0]" in reason(lambda m: add_move(m, "TRANSPOSE", [2, 3], [2, 3], [[0, 0]]))
    shape = [2] * 7
    assert "7 nested loops" in reason(lambda m: add_move(m, "TRANSPOSE", shape, shape, [list(range(6, -1, -1))]))
