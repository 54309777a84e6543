"""tile: TILE at 0 LSB."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.compiler.kernels.moving import MOVED, add_move, fresh, reason, shapes
from tests.golden import seeds
from tests.sampling import examples


@examples(80)
@given(st.data())
def test_any_repetition(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(5):
        shape = data.draw(shapes(1, 4))
        times = [data.draw(st.sampled_from([1, 1, 2, 3])) for _ in shape]
        out = [n * size for n, size in zip(times, shape, strict=True)]
        add_move(maker, "TILE", shape, out, [times], data.draw(MOVED))
    maker.check()


def test_refusals() -> None:
    assert "multiples [2]" in reason(lambda m: add_move(m, "TILE", [2, 3], [4, 3], [[2]]))
    assert "multiples [1, 0]" in reason(lambda m: add_move(m, "TILE", [2, 3], [2, 3], [[1, 0]]))


def test_every_dimension_at_once() -> None:
    maker = fresh(3)
    add_move(maker, "TILE", [2, 3, 2, 4], [4, 6, 6, 8], [[2, 2, 3, 2]])
    add_move(maker, "TILE", [2, 3, 1, 4, 2], [4, 6, 6, 8, 2], [[2, 2, 6, 2, 1]])
    maker.check()
