"""Calibration data named on the command line: arrays, saved tensors, or a generator function of the user's.

Example:
    >>> read_calibration("samples.npz", (torch.zeros(1, 3, 32, 32),), ("image",))
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from openneutron.errors import FormatError, OpenNeutronError, OptionError
from openneutron.executorch.capture.samples import load_samples

ACCEPTED = (
    "an .npz with an array of samples for each input (by its name, or x for the only one), an .npy, what torch.save wrote "
    "(.pt), or package.module:generator that yields inputs"
)


def read_calibration(
    given: str, examples: Sequence[torch.Tensor], names: Sequence[str] = ()
) -> list[tuple[torch.Tensor, ...]]:
    """Return the samples at a path or import path, each shaped like the example inputs."""
    path = Path(given)
    if path.suffix in (".npz", ".npy"):
        return _of_arrays(path, examples, names)
    if path.exists() or path.suffix in (".pt", ".xz"):
        return load_samples(path, examples)
    if ":" not in given:
        raise OptionError("there is no such file", where=given, hint=f"give {ACCEPTED}")
    return _of_generator(given, examples)


def _of_arrays(path: Path, examples: Sequence[torch.Tensor], names: Sequence[str]) -> list[tuple[torch.Tensor, ...]]:
    where = str(path)
    try:
        content = np.load(path, allow_pickle=False)
        arrays = {name: content[name] for name in content.files} if path.suffix == ".npz" else {"x": content}
    except FileNotFoundError:
        raise OptionError("there is no such file", where=where, hint=f"give {ACCEPTED}") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FormatError(f"the arrays cannot be read ({error})", where=where) from error
    found = []
    for position, example in enumerate(examples):
        name = names[position] if position < len(names) else f"input {position}"
        if name in arrays:
            array = arrays[name]
        elif len(examples) == 1 and ("x" in arrays or len(arrays) == 1):
            array = arrays.get("x", next(iter(arrays.values())))
        else:
            raise OptionError(
                f"it has {', '.join(arrays) or 'nothing'}, and no {name}", where=where, hint=f"give {ACCEPTED}"
            )
        found.append(_rows(array, example, f"{where}, {name}"))
    counts = {len(rows) for rows in found}
    if len(counts) != 1 or counts == {0}:
        raise OptionError(f"its inputs have {sorted(counts)} samples", where=where, hint="give as many of each")
    return list(zip(*found, strict=True))


def _rows(array: Any, example: torch.Tensor, where: str) -> list[torch.Tensor]:
    """Convert an array of samples, with or without their batch dimension, to tensors like the example."""
    shape = tuple(example.shape)
    if array.shape == shape:
        array = array[None]
    elif array.shape[1:] == shape[1:] and shape[:1] == (1,) and array.ndim == len(shape):
        array = array[:, None]
    if array.shape[1:] != shape or array.dtype.kind not in "fiub":
        raise OptionError(
            f"the samples are {array.dtype} {list(array.shape)}", where=where, hint=f"one sample is {list(shape)}"
        )
    return [torch.from_numpy(np.array(row)).to(example.dtype) for row in array]


def _of_generator(given: str, examples: Sequence[torch.Tensor]) -> list[tuple[torch.Tensor, ...]]:
    from openneutron.executorch.capture.sources import import_object

    made = import_object(given)
    samples = []
    try:
        for item in made() if callable(made) else made:
            parts = item if isinstance(item, (tuple, list)) else (item,)
            tensors = [one if isinstance(one, torch.Tensor) else torch.from_numpy(np.asarray(one)) for one in parts]
            samples.append(tuple(tensors[: len(examples)]))
    except OpenNeutronError:
        raise
    except Exception as error:
        message = " ".join(str(error).split()) or "no message"
        raise OptionError(f"the generator failed: {type(error).__name__}: {message}", where=given) from error
    if not samples:
        raise OptionError("the generator gave nothing", where=given, hint="it must yield inputs")
    return samples
