"""Scoring shards of data, one after the other or by several processes; never more of the data in memory than is in work.

Processes are forked once the model is compiled, so nothing is imported or compiled again; each has one thread. Shards are
counted in their order, whoever is done first, so that scores and an early stop do not depend on the number of processes.

Example:
    >>> found = score_shards([Form("float", lambda: Asked(predict))], shards, workers=2)
    >>> found.scores[0].accuracy
"""

from __future__ import annotations

import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from openneutron.analyze.accuracy import Array, Asked, Form, Labelled, Score, score
from openneutron.errors import OpenNeutronError, OptionError

Progress = Callable[[str], None]
# Looking after every shard is looking often: three deviations keep the chance of a wrong stop below that of one look at two.
_SURE: Final = 3.0


class Shard(Protocol):
    """A part of the data by name."""

    @property
    def name(self) -> str: ...

    @property
    def load(self) -> Callable[[], Labelled]: ...

    @property
    def content(self) -> Labelled | None: ...


@dataclass(frozen=True)
class Evaluation:
    """Scores of every form over all shards that could be read, those that could not, and whether it stopped early."""

    scores: list[Score]
    labels: Array
    failures: list[str] = field(default_factory=list)
    stopped: bool = False


@dataclass(frozen=True)
class Part:
    """What one shard gave: each form's answers and seconds, or why there are none."""

    labels: Array
    answers: tuple[Array, ...] = ()
    seconds: tuple[float, ...] = ()
    failure: OpenNeutronError | str = ""


def score_shards(
    forms: Sequence[Form],
    shards: Iterable[Shard],
    *,
    workers: int = 1,
    limit: int = 0,
    decide: float | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Score all forms on all shards, up to `limit` samples.

    With `decide` it stops once it is clear for every form whether it is more than so much (a share) below the first.
    """
    names = [form.name for form in forms]
    return collect(names, parts_of(forms, shards, workers), limit=limit, decide=decide, progress=progress)


def collect(
    names: Sequence[str],
    found: Iterable[Part],
    *,
    limit: int = 0,
    decide: float | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Scores of forms by name from the parts that shards gave, in the order of the shards."""
    parts: list[Part] = []
    failures: list[str] = []
    first_failure: OpenNeutronError | str = ""
    stopped = False
    for part in found:
        if part.failure:
            first_failure = first_failure or part.failure
            failures.append(str(part.failure))
            continue
        parts.append(part)
        total = sum(len(one.labels) for one in parts)
        if progress is not None:
            progress(f"{total:,} samples")
        if limit and total >= limit:
            break
        if decide is not None and _decided(*_scores(names, parts, limit), decide):
            stopped = True
            break
    if not parts:
        raise first_failure if isinstance(first_failure, OpenNeutronError) else OptionError(first_failure or "no data")
    scores, labels = _scores(names, parts, limit)
    return Evaluation(scores, labels, failures, stopped)


def _scores(names: Sequence[str], parts: list[Part], limit: int) -> tuple[list[Score], Array]:
    labels = np.concatenate([part.labels for part in parts])[: limit or None]
    scores = []
    for at, name in enumerate(names):
        answers = np.concatenate([part.answers[at] for part in parts])[: limit or None]
        seconds = sum(part.seconds[at] for part in parts)
        scores.append(Score(name, int((answers == labels).sum()), len(labels), seconds, answers))
    return scores, labels


def _decided(scores: list[Score], labels: Array, margin: float) -> bool:
    """Whether every form is surely within the margin below the first, or surely beyond it."""
    for one in scores[1:]:
        _, low, high = one.difference(scores[0], labels, z=_SURE)
        if not (low > -margin or high < -margin):
            return False
    return len(scores) > 1


def parts_of(forms: Sequence[Form], shards: Iterable[Shard], workers: int) -> Iterator[Part]:
    """What each shard gives, in order, from so many processes."""
    if workers < 2:
        made: dict[str, Asked] = {}
        for shard in shards:
            yield scored(forms, made, shard)
        return
    if "fork" not in multiprocessing.get_all_start_methods():
        raise OptionError("several workers need a system that can fork", hint="leave --workers out")
    yield from _forked(forms, shards, workers)


# What forked processes find: the forms, and the shards that they read themselves.
_inherited: dict[str, Any] = {}


def _forked(forms: Sequence[Form], shards: Iterable[Shard], workers: int) -> Iterator[Part]:
    """Parts in the order of the shards; shards that were read here (a generator's) are sent, others are known by number."""
    first = iter(shards)
    known: list[Shard] = []
    for shard in first:
        known.append(shard)
        if shard.content is not None:  # a generator: the rest comes as it comes
            break
    streamed = bool(known) and known[-1].content is not None
    _inherited.update(forms=forms, shards=known, made={})
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_one_thread)
    waiting: deque[Future[Part]] = deque()

    def jobs() -> Iterator[int | Labelled]:
        if streamed:
            yield from (shard.load() for shard in known)
            yield from (shard.load() for shard in first)
        else:
            yield from range(len(known))

    try:
        for job in jobs():
            waiting.append(pool.submit(_work, job))
            while len(waiting) > 2 * workers:
                yield _result(waiting.popleft())
        while waiting:
            yield _result(waiting.popleft())
    finally:
        # Waits for what is in work: a pool that is left behind complains when Python ends.
        pool.shutdown(wait=True, cancel_futures=True)
        _inherited.clear()


def _result(future: Future[Part]) -> Part:
    try:
        return future.result()
    except BrokenProcessPool:
        hint = "it may have run out of memory: try fewer --workers or a smaller --shard-size"
        raise OptionError("a worker ended", hint=hint) from None


def _one_thread() -> None:
    import os
    import sys

    os.environ["OPENNEUTRON_THREADS"] = "1"
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def _work(job: int | Labelled) -> Part:
    shard = _inherited["shards"][job] if isinstance(job, int) else _Read(job)
    return travelling(scored(_inherited["forms"], _inherited["made"], shard))


def travelling(found: Part) -> Part:
    """A part for another process: exceptions with arguments of their own do not travel."""
    return Part(found.labels, found.answers, found.seconds, str(found.failure))


@dataclass(frozen=True)
class _Read:
    content: Labelled
    name: str = ""

    @property
    def load(self) -> Callable[[], Labelled]:
        return lambda: self.content


def scored(forms: Sequence[Form], made: dict[str, Asked], shard: Shard) -> Part:
    """What one shard gives; `made` has the forms that were asked before."""
    try:
        data = shard.load()
        answers, seconds = [], []
        for form in forms:
            if form.name not in made:
                made[form.name] = form.make()
            began = time.perf_counter()
            answers.append(score(form.name, made[form.name], form.fit(data), batch=form.batch).answers)
            seconds.append(time.perf_counter() - began)
    except OpenNeutronError as error:
        return Part(np.empty(0, np.int64), failure=error)
    return Part(data.y, tuple(answers), tuple(seconds))
