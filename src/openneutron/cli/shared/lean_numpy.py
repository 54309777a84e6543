"""Importing numpy without what a compile has no use for, which is half of the import, and without its BLAS threads.

For a process that only compiles a LiteRT file. Hollow modules take the places of numpy's documentation, type aliases,
polynomials and linear algebra while it is imported and stay there; the arithmetic is numpy's own. Where numpy is imported
already, nothing is done.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

_HOLLOW = (
    # Fill in the docstrings of compiled functions, and are imported for nothing else.
    "numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars",
    # Names for annotations: numpy takes them from the first, others from the second.
    "numpy._typing", "numpy.typing",
    # Functions that numpy takes into its own namespace, and that the compiler never calls.
    "numpy.lib._nanfunctions_impl", "numpy.lib._polynomial_impl", "numpy.lib._utils_impl", "numpy.linalg",
)  # fmt: skip


class Absent:
    """Stands for every name of a hollow module: as a type alias it can be given parameters, as a function it refuses."""

    def __new__(cls, *args: Any, **given: Any) -> Absent:
        raise ImportError("this part of numpy is not imported in a process that only compiles")

    def __class_getitem__(cls, parameters: Any) -> type[Absent]:
        return cls


class _Hollow(ModuleType):
    """A module that has every name."""

    __all__: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent


def import_lean() -> None:
    """Import numpy, for a process that only compiles.

    Example:
        >>> import_lean()
        >>> import numpy
    """
    if "numpy" in sys.modules:
        return
    # The compiler multiplies no matrices; starting the threads of numpy's BLAS would take a tenth of a small compile.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in _HOLLOW:
        sys.modules[name] = _Hollow(name)
    import numpy

    vars(numpy)["typing"] = sys.modules["numpy.typing"]  # its own way to them would import them anew
