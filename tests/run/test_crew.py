"""Many samples: the results of one by one in their order, an error that names its sample, state that goes on in order."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import openneutron
from openneutron.convert import convert
from openneutron.errors import OptionError, RuntimeFailure
from openneutron.isolate import settings
from openneutron.options import Options
from openneutron.run.crew import Crew
from openneutron.run.runner import LiteRtRunner
from tests.streaming import streaming_convnet
from tests.tiny import convnet

MANY = 64


class Fake:
    """Doubles numbers; notes what it was asked, and how often its context was entered."""

    def __init__(self, made: list[Fake], *, keeps_state: bool = False, bad: tuple[int, ...] = ()) -> None:
        self.keeps_state, self.bad = keeps_state, bad
        self.inside = 0
        self.heard: list[int] = []
        self.together = 0  # samples that it takes at once
        made.append(self)

    def __call__(self, number: int) -> tuple[int]:
        self.heard.append(number)
        time.sleep(0.0005)  # lets another thread have its turn
        if number in self.bad:
            raise RuntimeFailure("no", where="model")
        return (2 * number,)

    def many(self, samples: Sequence[tuple[int]], *, threads: int) -> list[tuple[int]]:
        taken = samples[: self.together]
        self.heard += [number for (number,) in taken]
        good = [number for (number,) in taken]
        return [(2 * number,) for number in good[: next((at for at, n in enumerate(good) if n in self.bad), None)]]

    @contextmanager
    def beside_others(self) -> Iterator[None]:
        self.inside += 1
        yield


def _fakes(**options: Any) -> tuple[list[Fake], Crew]:
    made: list[Fake] = []
    return made, Crew(lambda: Fake(made, **options))


def _samples(count: int) -> list[tuple[int]]:
    return [(at,) for at in range(count)]


def test_every_thread_has_a_runner_and_results_keep_their_order() -> None:
    made, crew = _fakes()
    for _ in range(2):  # the second time with the same runners
        assert crew.run(_samples(MANY), threads=3) == [(2 * at,) for at in range(MANY)]
    assert len(made) == 4 and made[0].inside == 6 and not made[0].heard
    assert sum(len(one.heard) for one in made) == 2 * MANY


@pytest.mark.parametrize(("count", "threads"), [(MANY, 1), (20, 4), (0, 2)])
def test_few_samples_and_one_thread_need_one_runner(count: int, threads: int) -> None:
    made, crew = _fakes()
    assert crew.run(_samples(count), threads=threads) == [(2 * at,) for at in range(count)]
    assert len(made) == 1 and made[0].inside == 0


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_sample_with_an_error_is_named(threads: int) -> None:
    made, crew = _fakes(bad=(40, 41, 57))
    with pytest.raises(RuntimeFailure, match=r"^model, sample 40: no$"):
        crew.run(_samples(MANY), threads=threads)
    assert sum(len(one.heard) for one in made) < MANY


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("together", [MANY, 30])
def test_what_a_program_runs_at_once_is_not_run_again(together: int, threads: int) -> None:
    made, crew = _fakes()
    made[0].together = together
    assert crew.run(_samples(MANY), threads=threads) == [(2 * at,) for at in range(MANY)]
    assert sorted(number for one in made for number in one.heard) == list(range(MANY))
    made, crew = _fakes(bad=(40, 50))
    made[0].together = together
    with pytest.raises(RuntimeFailure, match=r"^model, sample 40: no$"):
        crew.run(_samples(MANY), threads=threads)


def test_few_samples_are_run_one_by_one() -> None:
    made, crew = _fakes()
    made[0].together = MANY
    made[0].many = None  # type: ignore[method-assign, assignment]
    assert crew.run(_samples(15), threads=2) == [(2 * at,) for at in range(15)]


def test_state_is_heard_in_order() -> None:
    made, crew = _fakes(keeps_state=True)
    made[0].together = MANY
    crew.run(_samples(MANY), threads=4)
    assert len(made) == 1 and made[0].heard == list(range(MANY))


def test_without_memory_for_another_copy_the_others_do_its_part() -> None:
    made: list[Fake] = []

    def make() -> Fake:
        if len(made) == 2:
            raise RuntimeFailure("no memory")
        return Fake(made)

    assert Crew(make).run(_samples(MANY), threads=4) == [(2 * at,) for at in range(MANY)]


def test_a_compiled_model_gives_the_bytes_of_one_by_one() -> None:
    program = openneutron.compile(convnet())
    (tensor,) = LiteRtRunner(program.tflite).inputs
    images = np.random.default_rng(0).integers(-128, 128, (MANY, *tensor.shape)).astype(tensor.dtype.numpy)
    expected = [program.run(image) for image in images]
    for threads in (1, 2, 4):
        found = program.run_many(images, threads=threads)
        assert [[one.tobytes() for one in outputs] for outputs in found] == [
            [one.tobytes() for one in outputs] for outputs in expected
        ]
    named = [{tensor.name: image} for image in images]
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(program.run_many(named), expected, strict=True))
    wrong = [*images[:37], images[37][..., :1], *images[38:]]
    with pytest.raises(OptionError, match="sample 37: input"):
        program.run_many(wrong, threads=2)
    with pytest.raises(OptionError, match="17 threads"):
        program.run_many(images, threads=17)


def test_a_compiled_stream_goes_on_from_sample_to_sample() -> None:
    compiled = convert(streaming_convnet(), Options(target="imxrt700")).model
    frames = np.random.default_rng(1).integers(-128, 128, (MANY, 1, 1, 1, 4)).astype(np.int8)
    runner = LiteRtRunner(compiled)
    expected = [runner(frame)[0] for frame in frames]
    crew = Crew(lambda: LiteRtRunner(compiled))
    assert crew.first.keeps_state
    found = crew.run([(frame,) for frame in frames], threads=4)
    assert all(np.array_equal(one[0], other) for one, other in zip(found, expected, strict=True))


def test_threads_are_what_the_setting_or_the_processors_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(settings.THREADS, raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(3)), raising=False)
    assert settings.threads() == 3
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(99)), raising=False)
    assert settings.threads() == settings.MOST_THREADS
    monkeypatch.setenv(settings.THREADS, "1")
    assert settings.threads() == 1
    for wrong in ("0", "17", "many"):
        monkeypatch.setenv(settings.THREADS, wrong)
        with pytest.raises(RuntimeFailure, match=settings.THREADS):
            settings.threads()
