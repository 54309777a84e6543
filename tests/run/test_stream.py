"""Streams: frame after frame, with the state that goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from openneutron.cli.app import app
from openneutron.convert import convert
from openneutron.errors import OptionError
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner
from openneutron.run.stream import frames_of, run_stream
from tests.streaming import streaming_convnet


def _frames(count: int) -> np.ndarray:
    return np.random.default_rng(1).integers(-128, 128, (count, 1, 1, 1, 4)).astype(np.int8)


def test_every_frame_goes_on_from_the_last() -> None:
    runner = LiteRtRunner(streaming_convnet())
    x = np.repeat(_frames(1), 5, axis=0)
    outputs = run_stream(runner.run, frames_of(runner.inputs, [x], source="here")).outputs["out"]
    assert outputs.shape == (5, 1, 1, 1, 6)
    assert not np.array_equal(outputs[0], outputs[1])
    assert np.array_equal(outputs[3], outputs[4])  # the window is full of one frame by then


def test_the_command_checks_a_whole_stream(tmp_path: Path) -> None:
    model, compiled, frames = (tmp_path / name for name in ("model.tflite", "out.tflite", "frames.npz"))
    model.write_bytes(streaming_convnet())
    compiled.write_bytes(convert(streaming_convnet(), Options(target="imxrt700")).model)
    np.savez(frames, frame=_frames(50))
    written = tmp_path / "outputs.npz"
    arguments = ["run", str(compiled), "--stream", str(frames), "--check", str(model), "-o", str(written)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "0 LSB" in done.output and "300 values" in done.output and "slowest frame" in done.output
    assert np.load(written)["out"].shape == (50, 1, 1, 1, 6)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"frame": np.zeros((0, 1, 1, 1, 4), np.int8)}, "there are no frames"),
        ({"frame": np.zeros((3, 1, 1, 1, 5), np.int8)}, "int8"),
        ({"a": np.zeros((3, 1), np.int8), "b": np.zeros((2, 1), np.int8)}, "differ in frames"),
    ],
    ids=["none", "shape", "counts"],
)
def test_streams_that_do_not_fit(arrays: dict[str, np.ndarray], words: str) -> None:
    runner = LiteRtRunner(streaming_convnet())
    with pytest.raises(OptionError, match=words):
        frames_of(runner.inputs, arrays, source="frames.npz")
