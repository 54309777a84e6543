"""Sound as input: a .wav file, and a function of the user's that makes the model's frames of it."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import io
import sys
import wave
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.errors import FormatError, OpenNeutronError, OptionError
from openneutron.files import read_file
from openneutron.litert.graph import Tensor

Array = npt.NDArray[Any]

ACCEPTED = "script.py:function or package.module:function, which takes samples (and their rate) and returns frames"


def read_wav(path: Path) -> tuple[Array, int]:
    """The samples of a PCM file from -1 to 1, several channels averaged, and how many there are in a second.

    Example:
        >>> samples, rate = read_wav(Path("hello.wav"))
    """
    try:
        with wave.open(io.BytesIO(read_file(path))) as sound:
            channels, width, rate = sound.getnchannels(), sound.getsampwidth(), sound.getframerate()
            data = sound.readframes(sound.getnframes())
    except (wave.Error, EOFError) as error:
        raise FormatError(
            f"this is no PCM .wav file ({error})", where=str(path), hint="save it as 16-bit PCM"
        ) from error
    whole = len(data) - len(data) % (width * channels)
    if not whole or not rate:
        raise FormatError("there is no sound in it", where=str(path))
    raw = np.frombuffer(data[:whole], np.uint8).reshape(-1, width)
    if width == 1:
        samples = raw[:, 0].astype(np.float64) / 128 - 1  # one byte has no sign
    else:
        wide = np.zeros((len(raw), 4), np.uint8)
        wide[:, 4 - width :] = raw
        samples = wide.view("<i4")[:, 0] / 2.0**31
    return samples.reshape(-1, channels).mean(1), rate


def load_front_end(given: str) -> Callable[..., Any]:
    """The function that a command line names."""
    module, _, name = given.rpartition(":")
    if not module or not name:
        raise OptionError("it names no function", where=given, hint=f"give {ACCEPTED}")
    try:
        loaded = _script(Path(module)) if module.endswith(".py") else importlib.import_module(module)
    except OpenNeutronError:
        raise
    except Exception as error:
        message = " ".join(str(error).split()) or "no message"
        raise OptionError(f"importing {module} failed: {type(error).__name__}: {message}", where=given) from error
    found = getattr(loaded, name, None)
    if not callable(found):
        raise OptionError(f"{module} has no function {name!r}", where=given, hint=f"give {ACCEPTED}")
    function: Callable[..., Any] = found
    return function


def _script(path: Path) -> Any:
    if not path.is_file():
        raise OptionError("there is no such file", where=str(path), hint=f"give {ACCEPTED}")
    spec = importlib.util.spec_from_file_location(f"_front_end_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def frames_of_sound(path: Path, front_end: str, tensors: Sequence[Tensor]) -> list[Array] | dict[str, Array]:
    """What the front end makes of a .wav file, in the shape and the type of the model's inputs, with a leading axis.

    Example:
        >>> frames_of_sound(Path("hello.wav"), "features.py:log_mel", runner.inputs)
    """
    function = load_front_end(front_end)
    samples, rate = read_wav(path)
    try:
        made = function(samples, rate) if _takes_rate(function) else function(samples)
    except Exception as error:
        message = " ".join(str(error).split()) or "no message"
        raise OptionError(f"the front end failed: {type(error).__name__}: {message}", where=front_end) from error
    by_name = {tensor.name: tensor for tensor in tensors}
    if isinstance(made, Mapping):
        return {
            name: _fit_to_input(np.asarray(value), by_name[name]) if name in by_name else np.asarray(value)
            for name, value in made.items()
        }
    arrays = [np.asarray(value) for value in made] if isinstance(made, (tuple, list)) else [np.asarray(made)]
    if len(arrays) != len(tensors):
        given = f"the front end gives {len(arrays)} array{'s' if len(arrays) != 1 else ''}"
        raise OptionError(f"{given}, the model has {len(tensors)} inputs", where=front_end)
    return [_fit_to_input(value, tensor) for value, tensor in zip(arrays, tensors, strict=True)]


def _takes_rate(function: Callable[..., Any]) -> bool:
    try:
        places = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in places) > 1


def _fit_to_input(value: Array, tensor: Tensor) -> Array:
    """Return frames in the input's shape and type; real numbers are quantized if the input is quantized."""
    if value.ndim and value.shape[1:] != tensor.shape and value[:1].size == int(np.prod(tensor.shape)):
        value = value.reshape(len(value), *tensor.shape)
    kind = tensor.dtype.numpy
    if value.dtype.kind != "f" or value.dtype == kind:
        return value
    if kind.kind == "f":
        return value.astype(kind)
    if tensor.quantization is None or kind.kind not in "iu":
        return value
    scale, zero = tensor.quantization.scalar
    limits = np.iinfo(kind)
    stored: Array = np.clip(np.rint(value / scale) + zero, limits.min, limits.max).astype(kind)
    return stored
