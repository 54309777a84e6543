from __future__ import annotations

import copy
import pickle

import pytest

from openneutron.executorch.deliver import spill
from openneutron.executorch.deliver.spill import Spilled


@pytest.mark.parametrize("limit", [3, 100])
def test_bytes_come_back_from_memory_and_from_a_file(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "_LARGE", limit)
    kept = Spilled(b"weights")
    assert [kept.read() for _ in range(2)] == [b"weights", b"weights"]
    assert copy.deepcopy(kept).read() == pickle.loads(pickle.dumps(kept)).read() == b"weights"
    assert (kept._data is None) is (limit == 3)


def test_a_full_disk_leaves_them_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(spill, "_LARGE", 3)
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert Spilled(b"weights").read() == b"weights"
