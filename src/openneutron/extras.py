"""Optional packages, and the extra of OpenNeutron that installs each.

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
    "tokenizers": "text",
    "sentencepiece": "text",
    "serial": "board",
    "dask": "cluster",
    "distributed": "cluster",
    "model_explorer": "model-explorer",
}


def missing_extra(package: str, purpose: str = "this", name: str = "") -> MissingExtraError | None:
    """Return the error for a missing package of an extra; None for other packages. `name` is a larger extra to suggest."""
    if package not in EXTRA_OF:
        return None
    hint = f"pip install 'openneutron[{name or EXTRA_OF[package]}]'"
    return MissingExtraError(f"{purpose} needs the Python package {package}, which is not installed", hint=hint)


@contextmanager
def extra(purpose: str, name: str = "") -> Iterator[None]:
    """Turn a failed import inside the block into an error that names the extra to install."""
    try:
        with pause_collector():
            yield
    except ModuleNotFoundError as error:
        found = missing_extra((error.name or "").partition(".")[0], purpose, name)
        if found is None:
            raise
        raise found from None


@contextmanager
def pause_collector() -> Iterator[None]:
    """Turn the garbage collector off inside the block: it takes a sixth of the time of a large import."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def need(package: str, purpose: str = "an ONNX model") -> Any:
    """Import a package; the error where it is missing names the extra to install.

    Example:
        >>> onnx = need("onnx")
    """
    with extra(purpose):
        return import_module(package)
