from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import contestants, runtime
from benchmarks.networks import chain
from benchmarks.timing import Times
from openneutron.errors import RuntimeFailure


def test_every_contestant_runs_a_model_on_the_same_inputs() -> None:
    model = contestants.Model("chain", chain(2))
    times = runtime.measure(model, seconds=0.0)
    assert set(times) == {
        "reference",
        "built-in",
        "XNNPACK",
        "cascaded",
        "uncascaded",
        "2 threads",
        "ours",
        "clearing",
    } | {"one by one", "batch"}
    assert {len(one.rounds) for one in times.values()} == {5}


def test_a_way_that_gives_other_bytes_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = contestants.Model("chain", chain(1), pte=b"program")
    monkeypatch.setattr(contestants, "through_executorch", lambda pte, inputs: (lambda: None, lambda: [b"wrong"]))
    with pytest.raises(RuntimeFailure, match="chain gives other bytes"):
        runtime.measure(model, seconds=0.0)


def test_a_row_has_milliseconds_and_how_many_times_faster_ours_is() -> None:
    seconds = {
        "ours": 1e-3,
        "reference": 13e-3,
        "built-in": 2.5e-3,
        "XNNPACK": 1.1e-3,
        "cascaded": 2e-3,
        "uncascaded": 1.9e-3,
        "2 threads": 1.25e-3,
        "clearing": 1e-5,
        "one by one": 8e-2,
        "batch": 5e-2,
    }
    times = {name: Times((one, one, one)) for name, one in seconds.items()}
    model = contestants.Model("m", b"")
    assert runtime.row(model, times, 1.01) == [
        "m",
        "1.000",
        "13.00",
        "2.50",
        "1.10",
        "0.95",
        "1.60",
        "1.60",
        "0.50%",
        "1.010",
    ]
    assert runtime.row(model, times, None)[-1] == "–"


def test_models_come_from_folders_and_files(tmp_path: Path) -> None:
    for name in ("b.tflite", "a.tflite", "notes.txt"):
        (tmp_path / name).write_bytes(name.encode())
    assert [m.name for m in contestants.from_files(str(tmp_path))] == ["a", "b"]
    assert [m.data for m in contestants.from_files(f"{tmp_path / 'b.tflite'},")] == [b"b.tflite"]


def test_inputs_fill_the_range_of_their_type_and_repeat() -> None:
    model = contestants.Model("chain", chain(1))
    (one,), (again,) = contestants.random_inputs(model), contestants.random_inputs(model)
    assert one.dtype == np.int8 and one.min() == -128 and one.max() == 127 and (one == again).all()


def test_images_keep_their_memory_when_seen_as_nchw() -> None:
    image = torch.arange(24).reshape(1, 2, 3, 4)
    seen = contestants.as_channels_last(image, (1, 4, 2, 3))
    assert seen.shape == (1, 4, 2, 3) and seen.data_ptr() == image.data_ptr()
    one_channel = torch.arange(6).reshape(1, 1, 2, 3)  # partitions take these without a transposition
    assert contestants.as_channels_last(one_channel, (1, 1, 2, 3)).equal(one_channel)
    assert contestants.as_channels_last(torch.arange(6).reshape(1, 6), (1, 6)).shape == (1, 6)


def test_the_heap_is_counted() -> None:
    before = contestants.heap_bytes()
    held = np.ones(1 << 22, np.uint8)
    after = contestants.heap_bytes()
    assert before is None or after is None or after - before >= held.nbytes


def test_models_prepared_for_threads_leave_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for before in (None, "3"):
        monkeypatch.delenv(contestants.THREADS, raising=False)
        if before is not None:
            monkeypatch.setenv(contestants.THREADS, before)
        with contestants.threads(2):
            assert os.environ[contestants.THREADS] == "2"
        assert os.environ.get(contestants.THREADS) == before
