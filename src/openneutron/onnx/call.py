"""Call: one operator during import, as the functions in `ops/` get it."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import torch

from openneutron.errors import FormatError, UnsupportedError
from openneutron.extras import need
from openneutron.onnx.tensors import WIDENED, from_numpy, to_numpy, torch_tensor, torch_type
from openneutron.onnx.values import Stored, Value, outside, to_signed, to_unsigned

# Largest table that an operator's rule may make: the matrix of a Fourier transform of 4,096 points.
LARGEST_TABLE = 1 << 24

# Operators that only move or compare elements: the scale of the result is that of the input.
_MOVES = frozenset({
    "ArgMax", "ArgMin", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GlobalMaxPool", "MaxPool",
    "Pad", "ReduceMax", "ReduceMin", "Reshape", "Resize", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile",
    "Transpose", "Unsqueeze", "Upsample",
})  # fmt: skip
Resolve = Callable[[Value], torch.Tensor]


class Call:
    """A node with its inputs; `version` is the opset of its domain.

    Import functions ask for tensors to compute with (`tensor`), or for numbers that must be known during import
    (`constant_input`).
    """

    def __init__(
        self, node: Any, inputs: list[Value | None], version: int, *, name: str = "", widen: bool = False,
        keep: bool = False,
    ) -> None:  # fmt: skip
        self.node = node
        self.inputs = inputs
        self.version = version
        self.name = name or node.name
        self.widen = widen
        self.keep = keep  # the model is quantized: weights keep their integers
        self.real = False  # convert quantized inputs to float
        self.resolve: Resolve = _raise_unresolved
        self._attributes = {one.name: one for one in node.attribute}
        self.own: list[Value] = []
        self._asked = 0
        self._once: list[Any] = []

    def start(self, resolve: Resolve) -> Call:
        """Start the computation, with tensors from `resolve`."""
        self.resolve = resolve
        self._asked = 0
        return self

    def has(self, index: int) -> bool:
        """Return whether the input is present; optional ones may be omitted."""
        return index < len(self.inputs) and self.inputs[index] is not None and not self.value(index).absent

    def value(self, index: int) -> Value:
        """Return the input as a value."""
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            raise FormatError(f"its input {index} ({self.input_name(index)}) is missing", hint="export the model again")
        return found

    def tensor(self, index: int) -> torch.Tensor:
        """Return the input as a tensor to compute with."""
        value = self.value(index)
        if value.items is not None:
            raise FormatError(f"its input {index} is a sequence, not a tensor", hint="export the model again")
        tensor = self.resolve(value)
        if self.real and value.scale is not None:
            low, high = torch.iinfo(tensor.dtype).min, torch.iinfo(tensor.dtype).max
            return torch.ops.quantized_decomposed.dequantize_per_tensor.default(
                tensor, value.scale, value.zero_point, low, high, tensor.dtype
            )
        return to_unsigned(tensor) if value.shifted else tensor

    def optional(self, index: int) -> torch.Tensor | None:
        """Return the input as a tensor to compute with, None if it is omitted."""
        return self.tensor(index) if self.has(index) else None

    def tensors(self) -> list[torch.Tensor]:
        """Return all inputs as tensors."""
        return [self.tensor(index) for index in range(len(self.inputs))]

    def stored_input(self, index: int) -> tuple[torch.Tensor, int]:
        """Return the stored form of an integer input, and by how much its zero point is lower than in the model."""
        value = self.value(index)
        tensor = self.resolve(value)
        if value.shifted:
            return tensor, 128 if tensor.dtype == torch.int8 else 32768
        if tensor.dtype not in (torch.uint8, torch.uint16):
            return tensor, 0
        shift = 128 if tensor.dtype == torch.uint8 else 32768
        if value.data is not None:
            data = value.data
            return self.constant(lambda: to_signed(data)), shift
        return to_signed(tensor), shift

    def unsigned_type(self, index: int) -> torch.dtype:
        """Return the type that the model gives an integer input, whatever type stores it."""
        value = self.value(index)
        unsigned = {torch.int8: torch.uint8, torch.int16: torch.uint16}
        return unsigned[value.like.dtype] if value.shifted else value.like.dtype

    def small_type(self, index: int) -> str:
        """Return the name of an input's type if it is stored in a larger one, such as 4-bit types; else ""."""
        return self.value(index).kind

    def moves_stored(self, name: str) -> bool:
        """Return whether the operator moves or compares elements of a quantized tensor, which can also be done in float."""
        # The padding value of this operator is a number in steps of the input's scale.
        crops = self.attribute("coordinate_transformation_mode") == "tf_crop_and_resize"
        first = self.inputs[0] if self.inputs else None
        return name in _MOVES and not crops and first is not None and first.scale is not None

    def as_real(self, number: float, index: int = 0) -> float:
        """Convert a number in steps of a quantized input to float, if that input is used in float."""
        value = self.value(index)
        if not self.real or value.scale is None:
            return number
        lower = (128 if value.like.dtype == torch.int8 else 32768) if value.shifted else 0
        return (number - value.zero_point - lower) * value.scale

    def is_known(self, index: int) -> bool:
        """Return whether the input's numbers are known during import."""
        value = self.value(index)
        return value.data is not None or value.known is not None

    def constant_input(self, index: int) -> Any:
        """Return the input's numbers, which must be known during import."""
        value = self.value(index)
        found = value.data if value.data is not None else value.known
        if found is None:
            raise UnsupportedError(
                f"its input {self.input_name(index)} is computed from the model's inputs, and what follows must have "
                "fixed sizes",
                hint="make it a constant, or cut the model before this node",
            )
        with outside():
            return to_numpy(to_unsigned(found) if value.shifted else found)

    def numbers(self, index: int) -> list[int]:
        """Return a known input as a list of integers."""
        return [int(one) for one in np.asarray(self.constant_input(index)).reshape(-1)]

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an attribute as a Python value: number, string, list; tensors as torch ones, graphs unchanged."""
        found = self._attributes.get(name)
        if found is None:
            return default
        onnx = need("onnx")
        kind = found.type
        if kind == onnx.AttributeProto.TENSOR:
            with outside():
                return self._widen(torch_tensor(found.t, f"attribute {name!r}"))
        if kind in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
            return found.g if kind == onnx.AttributeProto.GRAPH else list(found.graphs)
        value = onnx.helper.get_attribute_value(found)
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        if kind in (onnx.AttributeProto.STRINGS, onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS):
            return [one.decode(errors="replace") if isinstance(one, bytes) else one for one in value]
        return value

    def text(self, name: str, default: str, known: tuple[str, ...] = ()) -> str:
        """Return an attribute that must be one of a few strings."""
        value = str(self.attribute(name, default))
        if known and value not in known:
            raise UnsupportedError(f"its {name} is {value!r}", hint=f"known are {', '.join(known)}")
        return value

    def axes(self, index: int, name: str = "axes", moved: int = 13) -> list[int] | None:
        """Return axes, an attribute before opset `moved` and an input since; None if they are omitted."""
        if self.version >= moved and self.has(index):
            return self.numbers(index)
        given = self.attribute(name)
        return None if given is None else [int(one) for one in given]

    def _widen(self, tensor: torch.Tensor) -> torch.Tensor:
        """Convert a constant to the type the program computes in."""
        return tensor.to(WIDENED[tensor.dtype]) if self.widen and tensor.dtype in WIDENED else tensor

    def dtype(self, code: int) -> torch.dtype:
        """Return the torch type in which the program computes an ONNX data type."""
        found = torch_type(code)
        return WIDENED.get(found, found) if self.widen else found

    def room_for(self, *sizes: int) -> None:
        """Refuse a result of these sizes before it is made, if it is too large."""
        if any(size < 0 for size in sizes) or prod(sizes) > LARGEST_TABLE:
            raise self.refuse(f"it needs a constant of shape {list(sizes)}", hint="no such tensor fits the chip")

    def constant(self, data: Any) -> torch.Tensor:
        """Return a constant tensor made by the import function; calls must come in the same order each time.

        If `data` is a function, it is called once and may use the data of other constants.
        """
        if self._asked == len(self.own):
            with outside():
                made = data() if callable(data) else data
                tensor = made.contiguous() if isinstance(made, torch.Tensor) else from_numpy(np.asarray(made))
            self.own.append(Value(data=tensor, name=f"{self.name}_{self._asked}"))
        self._asked += 1
        return self.resolve(self.own[self._asked - 1])

    def once(self, make: Callable[[], Any]) -> Any:
        """Return what `make` returns, which is called the first time only."""
        if not self._once:
            with outside():
                self._once.append(make())
        return self._once[0]

    def scalar(self, index: int) -> float | int | None:
        """Return a known input of one element as a number, None for others."""
        value = self.value(index)
        if value.data is None or value.shifted or value.data.numel() != 1 or value.data.dtype == torch.bool:
            return None
        with outside():
            return value.data.item()

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of an input."""
        return tuple(int(size) for size in self.value(index).like.shape)

    def input_name(self, index: int) -> str:
        """Return the name of an input in the model."""
        names = list(self.node.input)
        return f"`{names[index]}`" if index < len(names) and names[index] else f"number {index}"

    def refuse(self, message: str, hint: str = "") -> UnsupportedError:
        """Return the error to raise if the operator has no torch form."""
        return UnsupportedError(message, hint=hint)


def stored_moves(function: Callable[[Call], Any]) -> Callable[[Call], Any]:
    """Wrap `function`, which moves elements, for quantized tensors: between a dequantize and a quantize of the same scale."""

    def convert(call: Call) -> Any:
        first = call.value(0)
        same = [one for one in call.inputs if one is not None and one.scale == first.scale is not None]
        if call.node.op_type == "Concat" and len(same) < len(call.inputs):
            return function(call)
        call.real = True
        try:
            made = function(call)
        finally:
            call.real = False
        results = made if isinstance(made, tuple) else (made,)
        return tuple(_stored_like(one, first) if one.is_floating_point() else one for one in results)

    return convert


def _stored_like(tensor: torch.Tensor, value: Value) -> Stored:
    kind = value.like.dtype
    low, high = torch.iinfo(kind).min, torch.iinfo(kind).max
    made = torch.ops.quantized_decomposed.quantize_per_tensor.default(
        tensor, value.scale, value.zero_point, low, high, kind
    )
    return Stored(made, value.shifted, value.scale, value.zero_point)


def _raise_unresolved(value: Value) -> torch.Tensor:
    raise RuntimeError("the call was not started")
