"""Sound as input: samples of every width, a function of the user's, and what does not fit."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from openneutron.cli.app import app
from openneutron.cli.inputs.front_end import frames_of_sound, load_front_end, read_wav
from openneutron.errors import FormatError, OptionError
from openneutron.litert.graph import DType, Quantization, Tensor
from tests.streaming import streaming_convnet

TONE = np.sin(np.arange(800) / 10) * 0.5
SCRIPT = """
import numpy as np

def cut(samples):
    return samples[: len(samples) // 4 * 4].reshape(-1, 4)[:30]

def scaled(samples, rate):
    return {"frame": cut(samples) * rate / 8000}

def broken(samples):
    raise ValueError("no such filter")

def two(samples):
    return cut(samples), cut(samples)
"""


def write_wav(path: Path, samples: np.ndarray, width: int = 2, channels: int = 1) -> Path:
    whole = np.rint(samples * (2.0 ** (8 * width - 1) - 1)).astype("<i4")
    data = np.repeat(whole + (128 if width == 1 else 0), channels).astype("<i4")
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(channels)
        sound.setsampwidth(width)
        sound.setframerate(8000)
        sound.writeframes(data.view(np.uint8).reshape(-1, 4)[:, :width].tobytes())
    return path


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "front.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_samples_of_every_width(tmp_path: Path, width: int) -> None:
    samples, rate = read_wav(write_wav(tmp_path / "tone.wav", TONE, width, channels=2))
    assert rate == 8000 and samples.shape == TONE.shape
    np.testing.assert_allclose(samples, TONE, atol=2.0 ** (2 - 8 * width))


def test_frames_are_quantized_as_the_input_is(tmp_path: Path, script: Path) -> None:
    tensor = Tensor("frame", (1, 1, 1, 4), DType.INT8, Quantization((0.01,), (-5,)))
    sound = write_wav(tmp_path / "tone.wav", TONE)
    (frames,) = frames_of_sound(sound, f"{script}:cut", [tensor])
    assert frames.shape == (30, 1, 1, 1, 4) and frames.dtype == np.int8
    np.testing.assert_array_equal(frames.reshape(-1), np.rint(read_wav(sound)[0][:120] / 0.01) - 5)
    scaled = frames_of_sound(sound, f"{script}:scaled", [tensor])
    assert isinstance(scaled, dict) and np.array_equal(scaled["frame"], frames)


def test_the_command_hears(tmp_path: Path, script: Path) -> None:
    model = tmp_path / "wake.tflite"
    model.write_bytes(streaming_convnet())
    sound = write_wav(tmp_path / "tone.wav", TONE)
    written = tmp_path / "answers.npz"
    arguments = ["run", str(model), "--stream", str(sound), "-o", str(written)]
    done = CliRunner().invoke(app, [*arguments, "--front-end", f"{script}:cut"])
    assert done.exit_code == 0, done.output
    assert np.load(written)["out"].shape == (30, 1, 1, 1, 6)
    for wrong in (arguments, ["run", str(model), "--front-end", f"{script}:cut"]):
        assert isinstance(CliRunner().invoke(app, wrong).exception, OptionError)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("front.py:broken", "no such filter"),
        ("front.py:two", "gives 2 arrays, the model has 1 inputs"),
        ("front.py:nothing", "has no function"),
        ("other.py:cut", "there is no such file"),
        ("front.py", "names no function"),
        ("no_such_module_here:cut", "importing no_such_module_here failed"),
    ],
)
def test_front_ends_that_do_not_work(tmp_path: Path, script: Path, name: str, words: str) -> None:
    given = name if name.startswith("no_") or ":" not in name else str(tmp_path / name)
    sound = write_wav(tmp_path / "tone.wav", TONE)
    with pytest.raises(OptionError, match=words):
        frames_of_sound(sound, given, [Tensor("frame", (1, 4), DType.FLOAT32)])


@pytest.mark.parametrize("content", [b"", b"RIFF....WAVEfmt ", b"no sound at all"])
def test_files_that_are_no_sound(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tone.wav"
    path.write_bytes(content)
    with pytest.raises(FormatError):
        read_wav(path)


def test_a_module_is_found_by_its_name() -> None:
    assert load_front_end("math:sqrt")(9) == 3
