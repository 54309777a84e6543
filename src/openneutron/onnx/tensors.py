"""Conversion of stored tensors and types between ONNX and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from openneutron.errors import FormatError, UnsupportedError
from openneutron.extras import need

# TensorProto.DataType → torch.
_TYPES = {
    "FLOAT": torch.float32, "UINT8": torch.uint8, "INT8": torch.int8, "UINT16": torch.uint16, "INT16": torch.int16,
    "INT32": torch.int32, "INT64": torch.int64, "BOOL": torch.bool, "FLOAT16": torch.float16, "DOUBLE": torch.float64,
    "UINT32": torch.uint32, "UINT64": torch.uint64, "BFLOAT16": torch.bfloat16, "COMPLEX64": torch.complex64,
    "COMPLEX128": torch.complex128, "FLOAT8E4M3FN": torch.float8_e4m3fn, "FLOAT8E4M3FNUZ": torch.float8_e4m3fnuz,
    "FLOAT8E5M2": torch.float8_e5m2, "FLOAT8E5M2FNUZ": torch.float8_e5m2fnuz,
}  # fmt: skip
# Types that are stored in another one: 4-bit integers use 8 bits.
_HELD = {"INT4": torch.int8, "UINT4": torch.uint8, "INT2": torch.int8, "UINT2": torch.uint8}
# The types that programs for the NPU compute in: ExecuTorch's and our kernels have a single float type.
WIDENED = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float64: torch.float32}


def type_name(code: int) -> str:
    """Return the name of an ONNX data type.

    Example:
        >>> type_name(1)
        'FLOAT'
    """
    onnx = need("onnx")
    try:
        return str(onnx.TensorProto.DataType.Name(code))
    except ValueError:
        return f"type {code}"


def torch_type(code: int) -> torch.dtype:
    """Return the torch type of an ONNX data type.

    Example:
        >>> torch_type(1)
        torch.float32
    """
    name = type_name(code)
    found = _TYPES.get(name) or _HELD.get(name)
    if found is None:
        raise UnsupportedError(f"type {name} has no torch form", hint="cast it before exporting")
    return found


def torch_tensor(proto: Any, what: str = "") -> torch.Tensor:
    """Return the data of a `TensorProto`.

    Example:
        >>> torch_tensor(model.graph.initializer[0])
    """
    onnx = need("onnx")
    name = what or f"tensor {proto.name!r}"
    torch_type(proto.data_type)
    if any(size < 0 for size in proto.dims):
        raise FormatError(f"{name} has the shape {list(proto.dims)}", hint="export the model again")
    try:
        array = onnx.numpy_helper.to_array(proto)
    except Exception as error:
        raise FormatError(
            f"{name} of shape {list(proto.dims)} does not hold that many values", hint="export the model again"
        ) from error
    return from_numpy(array, torch_type(proto.data_type))


def from_numpy(array: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Return an array as a tensor that owns its memory; ml_dtypes' types are converted by their bits."""
    array = np.ascontiguousarray(array).reshape(np.shape(array))
    if array.dtype.kind in "OSU":
        raise UnsupportedError("a tensor holds text", hint="the NPU computes with numbers; cut the model there")
    if array.dtype.kind == "V" or array.dtype.name.startswith(("bfloat", "float8", "int4", "uint4", "int2", "uint2")):
        if array.dtype.name.startswith(("int", "uint")):
            return torch.from_numpy(array.astype(np.int8 if array.dtype.name.startswith("int") else np.uint8))
        if dtype is None:
            dtype = torch.bfloat16
        bits = np.int16 if array.dtype.itemsize == 2 else np.uint8
        return torch.from_numpy(array.view(bits).copy()).view(dtype)
    return torch.from_numpy(array.copy() if not array.flags.writeable or array.base is not None else array)


def to_numpy(tensor: torch.Tensor) -> Any:
    """Return a tensor as an array; bfloat16 and float8 in ml_dtypes' types."""
    if tensor.dtype == torch.bfloat16 or "float8" in str(tensor.dtype):
        import ml_dtypes

        name = str(tensor.dtype).removeprefix("torch.")
        bits = torch.int16 if tensor.dtype == torch.bfloat16 else torch.uint8
        return tensor.detach().contiguous().view(bits).numpy().view(getattr(ml_dtypes, name))
    return tensor.detach().cpu().numpy()
