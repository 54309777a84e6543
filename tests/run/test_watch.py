"""Statistics of inner tensors are those of the values that LiteRT computes."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.litert import DType, write_model
from openneutron.litert.build import GraphBuilder
from openneutron.run.watch import watch


def test_each_channel_has_its_range_and_mean_over_all_samples() -> None:
    g = GraphBuilder()
    x, y, z = (g.tensor(name, (1, 2, 3), DType.FLOAT32) for name in "xyz")
    g.op("MUL", [x, g.tensor("by", (3,), DType.FLOAT32, data=np.float32([1, -10, 100]))], [y])
    g.op("RELU", [y], [z])
    samples = [(np.float32([[[1, 2, 3], [4, 5, 6]]]),), (np.float32([[[-1, -2, -3], [0, 0, np.inf]]]),)]
    seen = watch(write_model(g.finish([x], [z])), samples)
    assert set(seen) == {"x", "y", "z"}
    assert seen["y"].low.tolist() == [-1, -50, -300] and seen["y"].high.tolist() == [4, 20, 600]
    assert seen["y"].mean.tolist() == [1, -12.5, 150] and seen["y"].range == (-300, 600)
    assert seen["z"].low.tolist() == [0, 0, 0] and seen["y"].peak.tolist() == [4, 50, 600]
    assert seen["y"].divide(np.array([1, 10, 100])).peak.tolist() == [4, 5, 6]
    # The samples reach from 1 to 4 and from -1 to 0.
    assert seen["y"].usual_low.tolist() == [0, -25, 0]
    assert seen["y"].usual_range == pytest.approx((-28.75, 345))
