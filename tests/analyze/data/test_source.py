from __future__ import annotations

from pathlib import Path

import numpy as np

from openneutron.analyze.data.labelled import Wanted
from openneutron.analyze.data.source import Data


def test_what_is_named_and_what_a_model_of_the_zoo_brings(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.zeros((5, 2), np.float32), y=np.arange(5))
    named = Data(str(tmp_path / "d.npz"), limit=4, shard_size=3)
    assert [list(part.load().y) for part in named.shards(Wanted((2,)))] == [[0, 1, 2], [3]]
    own = Data(None, limit=10)
    assert len(own.read(Wanted((3, 32, 32)), zoo="cifarnet")) == 10
    assert [len(part.load()) for part in own.shards(Wanted((3, 32, 32)), zoo="cifarnet")] == [10]
