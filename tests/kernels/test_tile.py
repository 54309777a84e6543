"""tile: TILE at 0 LSB."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from openneutron.compiler.kernels.copy import RANK
from tests.golden import seeds
from tests.kernels.moving import BYTES, add_move, fresh, reason, shapes


@settings(max_examples=80)
@given(st.data())
def test_any_repetition(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(5):
        shape = data.draw(shapes(1, 4))
        times = [data.draw(st.sampled_from([1, 1, 2, 3])) for _ in shape]
        assume(sum(n > 1 for n in (*shape, *times)) <= RANK)
        out = [n * size for n, size in zip(times, shape, strict=True)]
        add_move(maker, "TILE", shape, out, [times], data.draw(BYTES))
    maker.check()


def test_refusals() -> None:
    assert "multiples [2]" in reason(lambda m: add_move(m, "TILE", [2, 3], [4, 3], [[2]]))
    assert "8 nested loops" in reason(lambda m: add_move(m, "TILE", [2] * 4, [4] * 4, [[2] * 4]))
