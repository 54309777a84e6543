"""Windows: memory for decoding coded constants while a model runs, for callers that supply their own memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from openneutron.machine import driver
from openneutron.microcode.decode import header_of
from openneutron.microcode.table import ALIGNMENT


def least_window(microcode: bytes, weights: bytes, kernels: bytes, where: str = "") -> int:
    """Return the bytes of the smallest window, as the driver computes them; 0 where constants are plain.

    Example:
        >>> least_window(blocks.microcode, blocks.weights, blocks.kernels)
    """
    plain = int(header_of(microcode)["plain_bytes"])
    if plain == 0:
        return 0
    blocks = [_align(block) for block in (microcode, weights, kernels)]
    config = driver.ModelConfig(*(pointer for _, pointer in blocks), 0)
    sizes = driver.ModelSizes(len(microcode), len(weights), len(kernels), 2**31, 2**31)
    least = ctypes.c_size_t()
    library = driver.library()
    driver.check(
        library.neutronGetLeastContextSize(ctypes.byref(config), ctypes.byref(sizes), ctypes.byref(least)), None, where
    )
    return plain - int(library.neutronGetModelContextSize(blocks[0][1], len(microcode)) - least.value)


def _align(data: bytes) -> tuple[Any, int]:
    """Return bytes in aligned memory and their address: the same bytes where they lie so, else a copy."""
    place = np.frombuffer(data, np.uint8)
    if len(data) and place.ctypes.data % ALIGNMENT == 0:
        return place, place.ctypes.data
    memory = ctypes.create_string_buffer(len(data) + ALIGNMENT)
    start = -(-ctypes.addressof(memory) // ALIGNMENT) * ALIGNMENT
    ctypes.memmove(start, data, len(data))
    return memory, start
