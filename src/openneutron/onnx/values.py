"""What flows between operators while a model is imported."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes


@dataclass(eq=False)
class Value:
    """A tensor, or a list of values (ONNX's sequences).

    `data` is the tensor itself where it does not depend on the model's inputs; else `fake` has its shape and type.
    `known` is the tensor of a call that stays one although its inputs are constant (a dequantize of weights).
    `shifted` says that an unsigned tensor is held signed, lower by half its range; `scale` and `zero_point` are those it
    was quantized with, where that is known.
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
    kind: str = ""  # of integers of 2 and 4 bits, which are held in 8

    @property
    def is_constant(self) -> bool:
        """Whether it does not depend on the inputs."""
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
    """A quantized result: `shifted` as `Value.shifted`, and its scale and (shifted) zero point where there is one of each."""

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


def unshifted(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that was held signed as the unsigned one it stands for."""
    if tensor.dtype == torch.int8:
        return (tensor.to(torch.int16) + 128).to(torch.uint8)
    return (tensor.to(torch.int32) + 32768).to(torch.uint16)


def shifted(tensor: torch.Tensor) -> torch.Tensor:
    """An unsigned tensor held signed, lower by half its range."""
    if tensor.dtype == torch.uint8:
        return (tensor.to(torch.int16) - 128).to(torch.int8)
    return (tensor.to(torch.int32) - 32768).to(torch.int16)


def outside() -> Any:
    """A context for computing with constants while a trace or shape propagation goes on around it."""
    return _disable_current_modes()
