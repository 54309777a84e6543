"""Prepare the inputs of a run: order and check given arrays, or generate random ones.

Example:
    >>> bind_inputs(runner.inputs, {"image": image}, source="out.tflite")
    >>> random_inputs(runner.inputs, seed=0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.errors import OptionError, UnsupportedError
from openneutron.litert.graph import DType, Tensor

Array = npt.NDArray[Any]


def bind_inputs(
    tensors: Sequence[Tensor], inputs: Sequence[Array] | Mapping[str, Array], *, source: str
) -> list[Array]:
    """Return the arrays in the order of the model's inputs; an `OptionError` names the array that does not fit."""
    names = [tensor.name for tensor in tensors]
    if isinstance(inputs, Mapping):
        if set(inputs) != set(names):
            raise OptionError(
                f"the inputs given are {', '.join(sorted(inputs)) or 'none'}",
                where=source,
                hint=f"it has {_list_names(names)}",
            )
        ordered = [inputs[name] for name in names]
    else:
        ordered = list(inputs)
        if len(ordered) != len(names):
            given = f"{len(ordered)} input{'' if len(ordered) == 1 else 's'} given"
            raise OptionError(f"{given}, the model has {len(names)}", where=source, hint=f"it has {_list_names(names)}")
    ordered = [_array(value, tensor) for tensor, value in zip(tensors, ordered, strict=True)]
    for tensor, value in zip(tensors, ordered, strict=True):
        if value.dtype != tensor.dtype.numpy or value.shape != tensor.shape:
            raise OptionError(
                f"input {tensor.name!r} is {value.dtype} {list(value.shape)}",
                where=source,
                hint=f"it must be {tensor.dtype.numpy} {list(tensor.shape)}{_scale_of(tensor)}",
            )
    return [np.asarray(value, order="C") for value in ordered]  # ascontiguousarray would give a scalar a dimension


def _array(value: Any, tensor: Tensor) -> Array:
    """Convert a value (also a torch tensor) to an array; float64 becomes float32 where the model takes float32."""
    found = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    return found.astype(np.float32) if found.dtype == np.float64 and tensor.dtype is DType.FLOAT32 else found


def random_inputs(tensors: Sequence[Tensor], *, seed: int) -> list[Array]:
    """Return random inputs for a seed: integers over their whole range, floats uniform in −1 … 1."""
    generator = np.random.default_rng(seed)
    return [_random(generator, tensor) for tensor in tensors]


def _random(generator: np.random.Generator, tensor: Tensor) -> Array:
    kind = tensor.dtype.numpy
    if tensor.dtype.is_opaque or tensor.dtype is DType.BFLOAT16 or kind.kind == "c":
        raise UnsupportedError(f"no random data can be made for input {tensor.name!r}, which is {tensor.dtype}")
    if kind.kind == "f":
        return generator.uniform(-1, 1, tensor.shape).astype(kind)
    if kind.kind == "b":
        return generator.integers(0, 2, tensor.shape).astype(kind)
    if tensor.quantization is None and kind.itemsize > 1:
        # Wide integers without a scale are counts and indices; small ones are valid for more operators.
        return generator.integers(0, 2, tensor.shape).astype(kind)
    limits = np.iinfo(kind)
    return generator.integers(limits.min, limits.max, tensor.shape, dtype=kind, endpoint=True)


def _list_names(names: Sequence[str]) -> str:
    return f"{len(names)}: {', '.join(names)}"


def _scale_of(tensor: Tensor) -> str:
    if tensor.quantization is None or len(tensor.quantization.scale) != 1:
        return ""
    scale, zero_point = tensor.quantization.scalar
    return f" (value / {scale:g} + {zero_point}, rounded)"
