"""Copies at a partition's border: which tensors the delegate transposes to the NPU's order, and what that costs the CPU."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from openneutron.board.cpu import CORTEX_M, on_core
from openneutron.machine.targets import Target


def transposed_bytes(tensors: Iterable[tuple[Any, int]]) -> list[int]:
    """Bytes of each tensor that is transposed, of pairs (tensor, whether the NPU wants it channels-last).

    Example:
        >>> transposed_bytes([(torch.empty(1, 3, 8, 8, dtype=torch.int8), 1)])
        [192]
    """
    return [value.numel() * value.element_size() for value, last in tensors if last and _is_transposed(value)]


def copy_cycles(size: float, target: Target | None = None) -> float:
    """Cycles of the CPU for transposing this many bytes in the delegate's own loop, whichever engine runs the rest."""
    return size * (CORTEX_M if target is None else on_core(CORTEX_M, target)).move


def _is_transposed(value: Any) -> bool:
    """Whether a tensor that the NPU wants channels-last is stored in another order that differs in bytes."""
    if not isinstance(value, torch.Tensor) or value.dim() < 3:
        return False
    if value.dim() == 4 and value.is_contiguous(memory_format=torch.channels_last):
        return False
    spatial = value.numel() // (value.shape[0] * value.shape[1]) if value.numel() else 0
    return value.shape[1] > 1 and spatial > 1
