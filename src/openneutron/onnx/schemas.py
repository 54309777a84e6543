"""What ONNX itself says about an operator."""

from __future__ import annotations

from typing import Any

from openneutron.extras import need


def schema_of(operator: str, version: int, domain: str) -> Any:
    """The schema of an operator in an opset; None where ONNX has none."""
    onnx = need("onnx")
    try:
        return onnx.defs.get_schema(operator, version, domain)
    except onnx.defs.SchemaError:
        return None


def is_function(operator: str, version: int, domain: str) -> bool:
    """Whether ONNX defines the operator by others.

    Example:
        >>> is_function("Gelu", 20, "")
        True
    """
    schema = schema_of(operator, version, domain)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)
