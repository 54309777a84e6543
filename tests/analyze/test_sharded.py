"""Scores over shards: the same from one process or two, failures named, a stop once the answer is clear."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from openneutron.analyze.accuracy import Form, Labelled, Predictor
from openneutron.analyze.sharded import score_shards
from openneutron.errors import FormatError, OptionError

X = np.random.default_rng(0).normal(size=(90, 5)).astype(np.float32)
Y = X.argmax(1).astype(np.int64)


@dataclass(frozen=True)
class Part:
    name: str
    load: Callable[[], Labelled]
    content: Labelled | None = None


def parts(size: int = 20, *, read: bool = False) -> Iterator[Part]:
    for at in range(0, len(Y), size):
        data = Labelled(X[at : at + size], Y[at : at + size])
        yield Part(f"part {at}", lambda data=data: data, data if read else None)  # type: ignore[misc]


def broken() -> Labelled:
    raise FormatError("it is damaged", where="part 2")


FORMS = [
    Form("first", lambda: Predictor(lambda x: x)),
    Form("other", lambda: Predictor(lambda x: np.where(x[:, :1] > 1.2, -x, x))),
]


@pytest.mark.parametrize("read", [False, True], ids=["read there", "read here"])
def test_two_processes_give_what_one_gives(read: bool) -> None:
    one, two = (score_shards(FORMS, parts(read=read), workers=workers) for workers in (1, 2))
    assert [score.correct for score in one.scores] == [score.correct for score in two.scores]
    assert np.array_equal(one.scores[1].answers, two.scores[1].answers) and np.array_equal(two.labels, Y)
    assert one.scores[0].accuracy == 1.0 > one.scores[1].accuracy


@pytest.mark.parametrize("workers", [1, 2])
def test_a_damaged_part_is_named_and_the_rest_counts(workers: int) -> None:
    found = score_shards(FORMS, [*parts(), Part("bad", broken)], workers=workers, limit=0)
    assert found.failures == ["part 2: it is damaged"] and found.scores[0].total == 90
    with pytest.raises((FormatError, OptionError), match="it is damaged"):
        score_shards(FORMS, [Part("bad", broken)], workers=workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_it_stops_at_the_limit_and_when_it_is_decided(workers: int) -> None:
    assert score_shards(FORMS, parts(), workers=workers, limit=33).scores[0].total == 33
    same = [FORMS[0], Form("same", FORMS[0].make)]
    found = score_shards(same, parts(), workers=workers, decide=0.2)
    assert found.stopped and found.scores[0].total == 60
    assert not score_shards(FORMS, parts(), workers=workers, decide=0.1).stopped


def test_intervals() -> None:
    first, other = score_shards(FORMS, parts()).scores
    low, high = other.interval()
    assert low < other.accuracy < high < 1
    found, least, most = other.difference(first, Y)
    assert least < found < most and found == pytest.approx(other.accuracy - first.accuracy)
    assert first.difference(first, Y)[0] == 0
