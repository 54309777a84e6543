"""Score shards of data in one process or several; only the shards in work are in memory.

Processes are forked once the model is compiled, so nothing is imported or compiled again; each has one thread. Shards are
counted in their order, whoever is done first, so that scores and an early stop do not depend on the number of processes.

Example:
    >>> found = score_shards([Form("float", lambda: Predictor(predict))], shards, workers=2)
    >>> found.scores[0].accuracy
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from openneutron.analyze.accuracy import Array, Form, Labelled, Predictor, Score, score
from openneutron.errors import OpenNeutronError, OptionError
from openneutron.process_pool import map_in_processes

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
        if decide is not None and _is_decided(*_scores(names, parts, limit), decide):
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


def _is_decided(scores: list[Score], labels: Array, margin: float) -> bool:
    """Return whether every form is surely within the margin below the first, or surely beyond it."""
    for one in scores[1:]:
        _, low, high = one.difference(scores[0], labels, z=_SURE)
        if not (low > -margin or high < -margin):
            return False
    return len(scores) > 1


def parts_of(forms: Sequence[Form], shards: Iterable[Shard], workers: int) -> Iterator[Part]:
    """Yield the result of each shard, in order, computed by `workers` processes.

    Shards that were read here (those of a generator) are sent to the processes; all others are read by the processes.
    """
    made: dict[str, Predictor] = {}
    if workers < 2:
        for shard in shards:
            yield score_shard(forms, made, shard)
        return
    rest = iter(shards)
    known: list[Shard] = []
    for shard in rest:
        known.append(shard)
        if shard.content is not None:  # a generator, which is read as workers become free
            break

    def jobs() -> Iterator[int | Labelled]:
        if known and known[-1].content is not None:
            yield from (shard.load() for shard in known)
            yield from (shard.load() for shard in rest)
        else:
            yield from range(len(known))

    def work(job: int | Labelled) -> Part:
        return make_picklable(score_shard(forms, made, known[job] if isinstance(job, int) else _Read(job)))

    hint = "it may have run out of memory: try fewer --workers or a smaller --shard-size"
    yield from map_in_processes(work, jobs(), workers, initializer=_one_thread, hint=hint)


def _one_thread() -> None:
    import os
    import sys

    os.environ["OPENNEUTRON_THREADS"] = "1"
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def make_picklable(found: Part) -> Part:
    """Return a part that can be pickled: its exception is replaced by its text."""
    return Part(found.labels, found.answers, found.seconds, str(found.failure))


@dataclass(frozen=True)
class _Read:
    content: Labelled
    name: str = ""

    @property
    def load(self) -> Callable[[], Labelled]:
        return lambda: self.content


def score_shard(forms: Sequence[Form], made: dict[str, Predictor], shard: Shard) -> Part:
    """Return the results of one shard; `made` caches the predictors of the forms."""
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
