"""Shapes of a model's inputs, with the user's sizes for open dimensions.

A scalar integer input (a sampling rate, a switch) may be given like a size: then it is fixed to that number, and the branches
it decides are chosen during import.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

from openneutron.errors import OptionError, UnsupportedError
from openneutron.onnx.tensors import WIDENED, torch_type, type_name

Sizes = Mapping[str, int | Sequence[int]]
# Largest input in elements: more does not fit an NPU with megabytes of memory.
_LARGEST_INPUT = 1 << 28


@dataclass(frozen=True)
class Input:
    """An input of the imported program."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    number: int | None = None  # of a fixed input, which the program does not have


def parse_sizes(texts: Sequence[str], *, option: str = "--size") -> dict[str, int | tuple[int, ...]]:
    """Parse the sizes given on the command line.

    Example:
        >>> parse_sizes(["batch=1", "x=1,3,48,192"])
        {'batch': 1, 'x': (1, 3, 48, 192)}
    """
    found: dict[str, int | tuple[int, ...]] = {}
    for text in texts:
        name, equals, numbers = text.rpartition("=")
        parts = [part.strip() for part in numbers.split(",")]
        if not equals or not name.strip() or not all(part.isdigit() and int(part) > 0 for part in parts):
            raise OptionError(f"{option} is {text!r}", hint="write batch=1 or input=1,3,48,192")
        sizes = tuple(int(part) for part in parts)
        found[name.strip()] = sizes[0] if len(sizes) == 1 else sizes
    return found


def open_dimensions(model: Any) -> dict[str, list[int | str]]:
    """Return the inputs of a model: numbers, names of open dimensions, "?" for unnamed ones."""
    stored = {one.name for one in model.graph.initializer}
    found = {}
    for one in model.graph.input:
        if one.name not in stored:
            dims = one.type.tensor_type.shape.dim
            found[one.name] = [int(dim.dim_value) if dim.dim_value > 0 else dim.dim_param or "?" for dim in dims]
    return found


def fixed_inputs(path: str, sizes: Sizes) -> dict[str, int]:
    """Return the inputs of a file that `sizes` fixes to a number."""
    from openneutron.onnx.read import read_model

    return {one.name: one.number for one in resolve(read_model(path), sizes, where=path)[0] if one.number is not None}


def resolve(model: Any, sizes: Sizes, *, where: str) -> tuple[list[Input], tuple[str, ...]]:
    """Return the inputs with fixed shapes, and notes on assumptions; an open first dimension becomes a batch of 1."""
    _check(sizes, where)
    used: set[str] = set()
    _refuse_unknown(model, sizes, where)
    inputs, notes = [], []
    for one in model.graph.input:
        if one.name not in open_dimensions(model):
            continue
        kind = one.type.WhichOneof("value")
        if kind != "tensor_type":
            raise UnsupportedError(
                f"input `{one.name}` is a {str(kind).removesuffix('_type')}, not a tensor", where=where,
                hint="export the model with tensors as inputs",
            )  # fmt: skip
        shape, assumed = _shape(one, sizes, used, where)
        notes += assumed
        if prod(shape) > _LARGEST_INPUT:
            raise UnsupportedError(
                f"input `{one.name}` has the shape {list(shape)}", where=where, hint="give smaller sizes"
            )
        code = one.type.tensor_type.elem_type
        try:
            dtype = torch_type(code)
        except UnsupportedError as error:
            raise UnsupportedError(
                f"input `{one.name}` holds {type_name(code)}", where=where, hint="cut the model after what reads it"
            ) from error
        number = sizes.get(one.name) if not shape and not dtype.is_floating_point else None
        if isinstance(number, int):
            used.add(one.name)
            notes.append(f"input `{one.name}` is fixed to {number}")
        inputs.append(Input(one.name, shape, WIDENED.get(dtype, dtype), number if isinstance(number, int) else None))
        if dtype in WIDENED:
            notes.append(f"input `{one.name}` is {type_name(code)} in the model and FLOAT in the program")
    unused = [name for name in sizes if name not in used]
    if unused:
        raise _nothing_called(unused[0], model, where)
    if all(one.number is not None for one in inputs):
        raise UnsupportedError("the model has no inputs", where=where, hint="there is nothing to run")
    return inputs, tuple(dict.fromkeys(notes))


def _refuse_unknown(model: Any, sizes: Sizes, where: str) -> None:
    """Raise for a size of neither an input nor a dimension, before any that is missing is told."""
    dims = (dim for one in model.graph.input for dim in one.type.tensor_type.shape.dim)
    known = {one.name for one in model.graph.input} | {dim.dim_param for dim in dims}
    for name in sizes:
        if name not in known:
            raise _nothing_called(name, model, where)


def _nothing_called(name: str, model: Any, where: str) -> OptionError:
    known = ", ".join(f"{one} {dims}" for one, dims in open_dimensions(model).items())
    return OptionError(f"nothing is called {name!r}", where=where, hint=f"the inputs are {known}")


def _shape(one: Any, sizes: Sizes, used: set[str], where: str) -> tuple[tuple[int, ...], list[str]]:
    tensor = one.type.tensor_type
    dims = list(tensor.shape.dim)
    whole = sizes.get(one.name)
    if whole is not None and not (isinstance(whole, int) and len(dims) != 1):
        used.add(one.name)
        shape = (whole,) if isinstance(whole, int) else tuple(int(size) for size in whole)
        fits = not tensor.HasField("shape") or _fits(dims, shape)
        if not fits:
            declared = [dim.dim_value or dim.dim_param or "?" for dim in dims]
            raise OptionError(
                f"input `{one.name}` is {declared}, not {list(shape)}", where=where, hint="give a shape that fits"
            )
        return shape, []
    if not tensor.HasField("shape"):
        raise OptionError(
            f"input `{one.name}` has no shape", where=where, hint=f"give one: --size {one.name}=1,3,224,224"
        )
    sizes_found: list[int] = []
    notes: list[str] = []
    missing: list[str] = []
    for position, dim in enumerate(dims):
        if dim.WhichOneof("value") == "dim_value" and dim.dim_value > 0:
            sizes_found.append(int(dim.dim_value))
            continue
        found = sizes.get(dim.dim_param) if dim.dim_param else None
        if isinstance(found, int):
            used.add(dim.dim_param)
            sizes_found.append(found)
        elif position == 0 and len(dims) > 1:
            sizes_found.append(1)
            notes.append(
                f"input `{one.name}`: the open first dimension{f' `{dim.dim_param}`' if dim.dim_param else ''} is 1"
            )
        else:
            missing.append(dim.dim_param or f"dimension {position}")
            sizes_found.append(0)
    if missing:
        declared = [dim.dim_value or dim.dim_param or "?" for dim in dims]
        example = ",".join(str(size or "N") for size in sizes_found)
        names = [name for name in missing if not name.startswith("dimension ")]
        choice = f"--size {names[0]}=N or " if names else ""
        raise OptionError(
            f"input `{one.name}` is {declared}: {', '.join(missing)} is open", where=where,
            hint=f"give {choice}--size {one.name}={example}; in Python sizes={{...}}",
        )  # fmt: skip
    return tuple(sizes_found), notes


def _fits(dims: Sequence[Any], shape: Sequence[int]) -> bool:
    """Return whether a shape agrees with the dimensions that are not open."""
    if len(dims) != len(shape):
        return False
    fixed = [(int(dim.dim_value), size) for dim, size in zip(dims, shape, strict=True) if dim.dim_value > 0]
    return all(declared == size for declared, size in fixed)


def _check(sizes: Sizes, where: str) -> None:
    for name, value in sizes.items():
        numbers: Any = [value] if isinstance(value, int) else value
        if not isinstance(numbers, (list, tuple)) or not all(
            isinstance(one, int) and not isinstance(one, bool) and one > 0 for one in numbers
        ):
            raise OptionError(
                f"the size of {name!r} is {value!r}", where=where, hint="give a number or a shape, above 0"
            )
