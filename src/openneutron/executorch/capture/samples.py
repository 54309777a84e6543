"""Calibration samples from a file: what `torch.save` wrote, plain (`.pt`) or compressed (`.xz`).

Example:
    >>> torch.save(images, "images.pt")
    >>> calibration = load_samples("images.pt", example_inputs)
"""

from __future__ import annotations

import io
import lzma
import os
import pickle  # for its exception; torch unpickles only tensors # nosec B403
from collections.abc import Sequence
from pathlib import Path

import torch

from openneutron.errors import FormatError, OptionError

_ACCEPTED = "a tensor of samples, or a list of samples: tensors, or tuples that begin with the model's inputs"


def load_samples(
    path: str | os.PathLike[str], example_inputs: Sequence[torch.Tensor]
) -> list[tuple[torch.Tensor, ...]]:
    """Return the samples of a file, each shaped like the example inputs; values after the inputs (labels) are dropped.

    A sample may come without the batch dimension. Nothing but tensors and containers is unpickled.

    Example:
        >>> load_samples("images.pt", (torch.zeros(1, 3, 32, 32),))
    """
    where = os.fspath(path)
    content = read_saved(Path(path))
    if not isinstance(content, (torch.Tensor, list, tuple)) or not len(content):
        raise FormatError(f"it holds {_kind(content)}", where=where, hint=f"save {_ACCEPTED}")
    return [_sample(one, example_inputs, f"{where}, sample {at}") for at, one in enumerate(content)]


def read_saved(path: Path) -> object:
    """Load what `torch.save` wrote, if it consists of tensors and containers of them."""
    where = str(path)
    if not path.is_file():
        raise OptionError("there is no such file", where=where)
    try:
        data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        return torch.load(io.BytesIO(data), weights_only=True)
    except (lzma.LZMAError, pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        # torch's own error text advises to load the file without checks.
        why = "it holds something other than tensors" if isinstance(error, pickle.UnpicklingError) else said
        raise FormatError(f"it is not what torch.save writes ({why})", where=where, hint=f"save {_ACCEPTED}") from error


def _sample(given: object, example_inputs: Sequence[torch.Tensor], where: str) -> tuple[torch.Tensor, ...]:
    parts = [given] if isinstance(given, torch.Tensor) else list(given) if isinstance(given, (list, tuple)) else []
    if len(parts) < len(example_inputs):
        raise FormatError(f"it is {_kind(given)} where the model has {len(example_inputs)} inputs", where=where)
    return tuple(_shape_like(part, example, where) for part, example in zip(parts, example_inputs, strict=False))


def _shape_like(part: object, example: torch.Tensor, where: str) -> torch.Tensor:
    if not isinstance(part, torch.Tensor):
        raise FormatError(f"it holds {_kind(part)} where an input belongs", where=where)
    whole = part.unsqueeze(0) if part.shape == example.shape[1:] else part
    if whole.shape != example.shape:
        raise FormatError(f"its shape is {list(part.shape)}, the model takes {list(example.shape)}", where=where)
    return whole.to(example.dtype)


def _kind(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a tensor of shape {list(value.shape)}" if isinstance(value, torch.Tensor) else f"a {type(value).__name__}"


# Enough samples for stable ranges, few enough to take seconds on the largest model.
_RANDOM_COUNT = 8


def random_samples(example_inputs: tuple[torch.Tensor, ...]) -> list[tuple[torch.Tensor, ...]]:
    """Return inputs of the same shapes from a normal distribution, equal in every run."""
    generator = torch.Generator().manual_seed(0)
    return [
        tuple(torch.randn(x.shape, generator=generator, dtype=x.dtype) for x in example_inputs)
        for _ in range(_RANDOM_COUNT)
    ]
