"""Libraries of custom operators, loaded before the model that uses them."""

from __future__ import annotations

from pathlib import Path

import torch

from openneutron.errors import OptionError


def load_library(path: str) -> None:
    """Load a shared library that registers torch operators."""
    if not Path(path).is_file():
        raise OptionError("there is no such file", where=path, hint="-s names a shared library of custom operators")
    try:
        torch.ops.load_library(path)
    except OSError as error:
        raise OptionError(f"the library cannot be loaded ({error})", where=path) from error
