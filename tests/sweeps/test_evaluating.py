from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openneutron.analyze.data.source import Data
from openneutron.analyze.sharded import collect, score_shards
from openneutron.cli.evaluate import build_forms_quietly
from openneutron.errors import OptionError
from openneutron.sweeps import evaluating
from openneutron.sweeps.evaluating import parts_on

WHAT = ("convnet.tflite", Data("d-{0..2}.npz"))  # the last is not there


class _Future:
    def __init__(self, work: Any) -> None:
        self._work = work

    def result(self) -> Any:
        return self._work()


class _Client:
    """A cluster of one worker, this process; test_cluster.py has a real one."""

    def __init__(self) -> None:
        self.made = 0

    def submit(self, function: Any, make: Any, *arguments: Any, key: str) -> _Future:
        def counted() -> Any:
            self.made += 1
            return make()

        return _Future(lambda: function(counted, *arguments))

    def cancel(self, futures: list[_Future]) -> None:
        pass

    def run(self, function: Any) -> None:
        function()


@pytest.fixture(autouse=True)
def same_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluating, "check_versions", lambda client: None)


def test_a_worker_makes_the_forms_once_and_gives_what_this_process_gives(labelled: Path) -> None:
    client = _Client()
    found = collect(["reference", "compiled"], parts_on(client, partial(build_forms_quietly, *WHAT), 3))
    alone = score_shards(*build_forms_quietly(*WHAT))
    assert client.made == 1 and not evaluating._made
    assert found.failures == alone.failures == ["d-2.npz: there is no such file"]
    assert [one.correct for one in found.scores] == [one.correct for one in alone.scores]
    assert np.array_equal(found.scores[1].answers, alone.scores[1].answers) and found.scores[0].total == 24


def test_a_worker_that_cannot_make_them_is_one_sentence(folder: Path) -> None:
    gone = partial(build_forms_quietly, "gone.tflite", *WHAT[1:])
    with pytest.raises(
        OptionError, match=r"a worker could not score part 1 of the data: gone.tflite: there is no such"
    ):
        list(parts_on(_Client(), gone, 3))
