"""Reading of the zoo's arrays: weights and images, as compressed ``.npz`` files."""

from __future__ import annotations

import zipfile
from importlib import resources
from importlib.resources.abc import Traversable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from openneutron.errors import FormatError

_REINSTALL = "reinstall openneutron"


def packaged_path(folder: str, file: str) -> Traversable:
    """Return the path of ``zoo/<folder>/<file>``, wherever the package is installed."""
    return resources.files("openneutron.zoo") / folder / file


def read_arrays(path: Traversable) -> dict[str, NDArray[np.generic]]:
    """Return all arrays of an ``.npz`` file."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}
    except FileNotFoundError as error:
        raise FormatError("the file is missing", where=str(path), hint=_REINSTALL) from error
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FormatError(f"the file is damaged ({error})", where=str(path), hint=_REINSTALL) from error


def load_weights(model: nn.Module, path: Traversable) -> None:
    """Fill the parameters and buffers of ``model`` from an ``.npz`` file; their names must match exactly."""
    arrays = read_arrays(path)
    state = model.state_dict()
    if state.keys() != arrays.keys():
        odd = sorted(state.keys() ^ arrays.keys())
        raise FormatError(f"its entries are not those of the model: {', '.join(odd)}", where=str(path), hint=_REINSTALL)
    for key, expected in state.items():
        if tuple(expected.shape) != arrays[key].shape:
            message = f"{key} has shape {arrays[key].shape}, the model needs {tuple(expected.shape)}"
            raise FormatError(message, where=str(path), hint=_REINSTALL)
    model.load_state_dict({key: torch.from_numpy(array).to(state[key].dtype) for key, array in arrays.items()})
