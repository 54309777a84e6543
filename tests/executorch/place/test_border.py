"""Copies at a partition's border are priced by one function, for placement and whole program alike."""

from __future__ import annotations

import torch

from openneutron.board.cpu import CORTEX_M
from openneutron.executorch.place.border import copy_cycles, transposed_bytes


def image(memory_format: torch.memory_format = torch.contiguous_format) -> torch.Tensor:
    return torch.zeros(1, 3, 8, 8, dtype=torch.int8).to(memory_format=memory_format)


def test_only_what_is_stored_in_another_order_is_turned() -> None:
    wanted = [(image(), 1), (image(torch.channels_last), 1), (image(), 0), (torch.zeros(1, 10), 1), (None, 1)]
    assert transposed_bytes(wanted) == [192]


def test_one_channel_and_one_pixel_are_the_same_bytes_in_both_orders() -> None:
    assert transposed_bytes([(torch.zeros(1, 1, 8, 8), 1), (torch.zeros(1, 8, 1, 1), 1)]) == []


def test_a_byte_costs_what_the_delegates_loop_takes() -> None:
    assert copy_cycles(100) == 100 * CORTEX_M.move
