"""Importing numpy without its documentation, its type aliases and its BLAS threads: half of the import, of no use to a compile.

For a process that only compiles a LiteRT file. Empty modules take the places of those parts while numpy is imported and stay
there; the arithmetic is numpy's own. Where numpy is imported already, nothing is done.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

# Fill in the docstrings of compiled functions, and are imported for nothing else.
_DOCUMENTATION = ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars")
# Names for annotations: numpy takes them from the first, others from the second.
_ALIASES = ("numpy._typing", "numpy.typing")


class _Alias:
    """Stands for every type alias: it can be given parameters."""

    def __class_getitem__(cls, parameters: Any) -> type[_Alias]:
        return cls


class _Aliases(ModuleType):
    """A module that has every name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Alias


def import_lean() -> None:
    """Import numpy, for a process that reads no documentation of it.

    Example:
        >>> import_lean()
        >>> import numpy
    """
    if "numpy" in sys.modules:
        return
    # The compiler multiplies no matrices; starting the threads of numpy's BLAS would take a tenth of a small compile.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in _DOCUMENTATION:
        sys.modules[name] = ModuleType(name)
    for name in _ALIASES:
        sys.modules[name] = _Aliases(name)
    import numpy

    vars(numpy)["typing"] = sys.modules["numpy.typing"]  # its own way to them would import them anew
