"""Inputs of a run: checked against the program, and laid out in memory as it expects them.

The stock runtime takes a tensor whose memory order differs from the program's and reads it in the wrong order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from openneutron.errors import OptionError
from openneutron.microcode.pte import PlanTensor


def arrange_inputs(wanted: Sequence[PlanTensor], inputs: Sequence[Any], *, where: str) -> tuple[Any, ...]:
    """The inputs in the program's memory order; an `OptionError` names the one that does not fit.

    Example:
        >>> arrange_inputs(plan.inputs, (image.to(memory_format=torch.channels_last),), where="model.pte")
    """
    if len(inputs) != len(wanted):
        raise OptionError(f"the program takes {len(wanted)} inputs, {len(inputs)} were given", where=where)
    return tuple(_arrange(at, *pair, where) for at, pair in enumerate(zip(wanted, inputs, strict=True)))


def _arrange(position: int, wanted: PlanTensor, value: Any, where: str) -> Any:
    if not wanted.dtype:
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        value = torch.from_numpy(np.array(value, order="C"))
        # numpy's default is float64
        value = value.float() if value.dtype == torch.float64 and wanted.dtype == "float32" else value
    if not isinstance(value, Tensor):
        raise OptionError(
            f"input {position} is a {type(value).__name__}, {_takes(wanted)}",
            where=where,
            hint="give a torch tensor or a numpy array",
        )
    fits = value.ndim == len(wanted.shape) if wanted.dynamic else value.shape == wanted.shape
    if value.dtype is not getattr(torch, wanted.dtype, None) or not fits:
        dtype = str(value.dtype).removeprefix("torch.")
        raise OptionError(f"input {position} is {dtype} {list(value.shape)}, {_takes(wanted)}", where=where)
    order = wanted.dim_order
    seen = value.detach().permute(order)
    if seen.is_contiguous():
        return value.detach() if value.requires_grad else value
    # Copies only where the memory order differs.
    return seen.contiguous().permute([order.index(axis) for axis in range(value.ndim)])


def _takes(wanted: PlanTensor) -> str:
    return f"the program takes {wanted.dtype} {list(wanted.shape)}"
