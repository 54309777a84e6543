"""Values that flow between operators during import."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from openneutron.executorch.upstream.names import without_modes


@dataclass(eq=False)
class Value:
    """A tensor, or a list of values (ONNX's sequences).

    `data` is the tensor itself if it does not depend on the model's inputs; else `fake` has its shape and type.
    `known` is the tensor of a call that is kept although its inputs are constant (a dequantize of weights).
    `shifted` says that an unsigned tensor is stored signed, lower by half its range; `scale` and `zero_point` are its
    quantization parameters, where known.
    """

    data: torch.Tensor | None = None
    fake: torch.Tensor | None = None
    known: torch.Tensor | None = None
    shifted: bool = False
    scale: float | None = None
    zero_point: int = 0
    items: list[Value] | None = None
    absent: bool = False
    name: str = ""
    kind: str = ""  # for 2- and 4-bit integers, which are stored in 8

    @property
    def is_constant(self) -> bool:
        """Return whether it does not depend on the inputs."""
        if self.items is not None:
            return all(item.is_constant for item in self.items)
        return self.data is not None or self.absent

    @property
    def like(self) -> torch.Tensor:
        """A tensor of its shape and type."""
        found = self.data if self.data is not None else self.fake
        assert found is not None
        return found


@dataclass(eq=False)
class Stored:
    """A quantized result: `shifted` as in `Value`, and its scale and (shifted) zero point if it has one of each."""

    tensor: torch.Tensor
    shifted: bool = False
    scale: float | None = None
    zero_point: int = 0


@dataclass(eq=False)
class Step:
    """One call that depends on the inputs, with the values it makes."""

    call: Any
    function: Any
    outputs: list[Value | None] = field(default_factory=list)


def to_unsigned(tensor: torch.Tensor) -> torch.Tensor:
    """Convert a tensor stored signed back to its unsigned values."""
    if tensor.dtype == torch.int8:
        return (tensor.to(torch.int16) + 128).to(torch.uint8)
    return (tensor.to(torch.int32) + 32768).to(torch.uint16)


def to_signed(tensor: torch.Tensor) -> torch.Tensor:
    """Convert an unsigned tensor to signed storage, lower by half its range."""
    if tensor.dtype == torch.uint8:
        return (tensor.to(torch.int16) - 128).to(torch.int8)
    return (tensor.to(torch.int32) - 32768).to(torch.int16)


def outside() -> Any:
    """Return a context for computing with constants during a trace or shape propagation."""
    return without_modes()
