"""ONNX front end: imports a model as a `torch.export.ExportedProgram`, which is compiled like any PyTorch model.

Needs the packages of the extra `openneutron[onnx]`, which no other module needs.

Example:
    >>> imported = load("model.onnx", sizes={"batch": 1})
    >>> imported.program, imported.example_inputs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openneutron.onnx.importer import Imported, load

__all__ = ["Imported", "load"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from openneutron.onnx import importer

    return getattr(importer, name)
