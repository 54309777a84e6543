"""Packages that only some work needs, and the extra of OpenNeutron that brings each.

Example:
    >>> with extra("`--optimize max`"):
    ...     import ortools
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from openneutron.errors import MissingExtraError

# Top-level package → extra in pyproject.toml. A test keeps both alike.
EXTRA_OF = {
    "torch": "executorch",
    "executorch": "executorch",
    "torchao": "executorch",
    "ortools": "max",
    "PIL": "images",
    "ai_edge_quantizer": "quantize",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "pandas": "tables",
    "pyarrow": "parquet",
    "dask": "cluster",
    "distributed": "cluster",
}


def missing_extra(package: str, purpose: str = "this", name: str = "") -> MissingExtraError | None:
    """The error for a package that an extra brings; None for any other package. `name` is an extra that brings more."""
    if package not in EXTRA_OF:
        return None
    hint = f"pip install 'openneutron[{name or EXTRA_OF[package]}]'"
    return MissingExtraError(f"{purpose} needs the Python package {package}, which is not installed", hint=hint)


@contextmanager
def extra(purpose: str, name: str = "") -> Iterator[None]:
    """Around an import: when the package is not there, say in one sentence which extra brings it."""
    try:
        with uncollected():
            yield
    except ModuleNotFoundError as error:
        found = missing_extra((error.name or "").partition(".")[0], purpose, name)
        if found is None:
            raise
        raise found from None


@contextmanager
def uncollected() -> Iterator[None]:
    """Around a large import: what it makes stays, and looking for garbage in it is a sixth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def need(package: str, purpose: str = "an ONNX model") -> Any:
    """The package, imported where it is needed; when it is not there, one sentence says which extra brings it.

    Example:
        >>> onnx = need("onnx")
    """
    with extra(purpose):
        return import_module(package)
