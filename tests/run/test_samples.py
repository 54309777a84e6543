"""Many samples: the results of one by one in their order, an error that names its sample, state that goes on in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import openneutron
from openneutron import environment
from openneutron.convert import convert
from openneutron.errors import OptionError, RuntimeFailure
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner
from openneutron.run.samples import run_samples
from tests.streaming import streaming_convnet
from tests.tiny import convnet

MANY = 64


class Fake:
    """Doubles numbers and records which it was given; `many` takes the first `together` samples."""

    def __init__(self, *, together: int = 0, keeps_state: bool = False, bad: tuple[int, ...] = ()) -> None:
        self.together, self.keeps_state, self.bad = together, keeps_state, bad
        self.given: list[int] = []
        self.threads: list[int] = []

    def __call__(self, number: int) -> tuple[int]:
        self.given.append(number)
        if number in self.bad:
            raise RuntimeFailure("no", where="model")
        return (2 * number,)

    def many(self, samples: Sequence[tuple[int]], *, threads: int) -> list[tuple[int]]:
        self.threads.append(threads)
        good = [number for (number,) in samples[: self.together]]
        good = good[: next((at for at, number in enumerate(good) if number in self.bad), None)]
        self.given += good
        return [(2 * number,) for number in good]


def _samples(count: int) -> list[tuple[int]]:
    return [(at,) for at in range(count)]


@pytest.mark.parametrize("together", [0, 30, MANY])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_sample_is_run_once_and_results_keep_their_order(together: int, threads: int) -> None:
    fake = Fake(together=together)
    assert run_samples(fake, _samples(MANY), threads=threads) == [(2 * at,) for at in range(MANY)]
    assert fake.given == list(range(MANY)) and fake.threads == [threads]


@pytest.mark.parametrize(("count", "threads", "expected"), [(15, 2, []), (0, 2, []), (20, 4, [1]), (40, 4, [2])])
def test_a_thread_of_the_driver_needs_samples_enough(count: int, threads: int, expected: list[int]) -> None:
    fake = Fake(together=MANY)
    assert run_samples(fake, _samples(count), threads=threads) == [(2 * at,) for at in range(count)]
    assert fake.threads == expected


@pytest.mark.parametrize("together", [0, 30, MANY])
def test_the_first_sample_with_an_error_is_named(together: int) -> None:
    fake = Fake(together=together, bad=(40, 41, 57))
    with pytest.raises(RuntimeFailure, match=r"^model, sample 40: no$"):
        run_samples(fake, _samples(MANY), threads=3)
    assert fake.given == list(range(41))


def test_programs_that_keep_state_run_in_order() -> None:
    fake = Fake(together=MANY, keeps_state=True)
    run_samples(fake, _samples(MANY), threads=4)
    assert fake.given == list(range(MANY)) and not fake.threads


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
    runner.reset()
    assert runner.keeps_state
    found = run_samples(runner, [(frame,) for frame in frames], threads=4)
    assert all(np.array_equal(one[0], other) for one, other in zip(found, expected, strict=True))


def test_threads_are_what_the_setting_or_the_processors_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(environment.THREADS, raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(3)), raising=False)
    assert environment.threads() == 3
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(99)), raising=False)
    assert environment.threads() == environment.MOST_THREADS
    monkeypatch.setenv(environment.THREADS, "1")
    assert environment.threads() == 1
    for wrong in ("0", "17", "many"):
        monkeypatch.setenv(environment.THREADS, wrong)
        with pytest.raises(RuntimeFailure, match=environment.THREADS):
            environment.threads()
