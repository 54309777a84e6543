"""mirror_pad: MIRROR_PAD of any rank in both modes, at 0 LSB."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openneutron.compiler.kernels.mirror_pad import mirror_indices
from tests.compiler.kernels.moving import MOVED, add_move, check_between_neighbours, fresh, reason, shapes
from tests.golden import seeds
from tests.sampling import examples


@examples(100)
@given(st.data())
def test_any_frame(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(4):
        mode = data.draw(st.sampled_from(["REFLECT", "SYMMETRIC"]))
        shape = data.draw(shapes(1, 5, 4))
        most = [size - (mode == "REFLECT") for size in shape]
        borders = [[data.draw(st.integers(0, m)), data.draw(st.integers(0, m))] for m in most]
        out = [size + sum(pair) for size, pair in zip(shape, borders, strict=True)]
        add_move(maker, "MIRROR_PAD", shape, out, [borders], data.draw(MOVED), mode=mode)
    maker.check()


def test_tables_are_numpys() -> None:
    line = np.arange(5)
    assert mirror_indices(5, 4, 3, 1) == list(np.pad(line, (4, 3), mode="reflect"))
    assert mirror_indices(5, 5, 2, 0) == list(np.pad(line, (5, 2), mode="symmetric"))


def test_a_frame_larger_than_the_image_is_refused() -> None:
    why = reason(lambda m: add_move(m, "MIRROR_PAD", [3], [6], [[[3, 0]]], mode="REFLECT"))
    assert "paddings [3, 0]" in why


def test_a_frame_streams_by_rows() -> None:
    assert (
        check_between_neighbours("MIRROR_PAD", (1, 36, 14, 4), [[[0, 0], [2, 2], [2, 0], [0, 0]]], mode="REFLECT")
        <= 496
    )
