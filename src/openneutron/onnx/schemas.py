"""ONNX's own schemas of operators."""

from __future__ import annotations

from typing import Any

from openneutron.extras import need


def schema_of(operator: str, version: int, domain: str) -> Any:
    """Return the schema of an operator in an opset; None if ONNX has none."""
    onnx = need("onnx")
    try:
        return onnx.defs.get_schema(operator, version, domain)
    except onnx.defs.SchemaError:
        return None


def is_function(operator: str, version: int, domain: str) -> bool:
    """Return whether ONNX defines the operator through others.

    Example:
        >>> is_function("Gelu", 20, "")
        True
    """
    schema = schema_of(operator, version, domain)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)
