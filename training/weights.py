"""Writing the arrays that the zoo ships."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import nn

import openneutron.zoo

ZOO = Path(openneutron.zoo.__file__).parent
WEIGHTS = ZOO / "weights"


def save_weights(model: nn.Module, path: Path) -> None:
    """Write all parameters and buffers of ``model`` to ``path``."""
    save_arrays(path, {key: value.detach().contiguous().numpy() for key, value in model.state_dict().items()})


def save_arrays(path: Path, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Write named arrays to ``path``, compressed, in one step: a broken-off run leaves the old file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.stem}.{os.getpid()}.npz")
    with partial.open("wb") as stream:
        np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
    partial.replace(path)
