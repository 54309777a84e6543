"""Statistics of inner tensors are those of the values that LiteRT computes."""

from __future__ import annotations

import numpy as np

from openneutron.litert import DType, write_model
from openneutron.litert.build import GraphBuilder
from openneutron.quantize_litert.watch import Seen, Watched, add_seen


def test_each_channel_has_its_range_over_all_samples() -> None:
    g = GraphBuilder()
    x, y, z = (g.tensor(name, (1, 2, 3), DType.FLOAT32) for name in "xyz")
    g.op("MUL", [x, g.tensor("by", (3,), DType.FLOAT32, data=np.float32([1, -10, 100]))], [y])
    g.op("RELU", [y], [z])
    watched = Watched(write_model(g.finish([x], [z])))
    seen: dict[str, Seen] = {}
    for sample in ([[[1, 2, 3], [4, 5, 6]]], [[[-1, -2, -3], [0, 0, np.inf]]]):
        add_seen(seen, watched.run((np.float32(sample),)))
    assert set(seen) == {"x", "y", "z"}
    assert seen["y"].low.tolist() == [-1, -50, -300] and seen["y"].high.tolist() == [4, 20, 600]
    assert seen["y"].range == (-300, 600)
    assert seen["z"].low.tolist() == [0, 0, 0] and seen["y"].peak.tolist() == [4, 50, 600]
    assert seen["y"].divide(np.array([1, 10, 100])).peak.tolist() == [4, 5, 6]
    (found,) = watched.outputs()
    assert found[0, 0].tolist() == [0, 20, 0] and found[0, 1, 2] > 3e38
