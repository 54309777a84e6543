"""The packages of the extra `openneutron[onnx]`, asked for where they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from openneutron.errors import OptionError


def need(package: str) -> Any:
    """The package, or one sentence that names the extra.

    Example:
        >>> onnx = need("onnx")
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise OptionError(
            f"ONNX models need the package {package.partition('.')[0]!r}, which is not installed",
            hint="pip install 'openneutron[onnx]'",
        ) from error
