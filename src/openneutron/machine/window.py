"""Windows: the memory that coded constants are decoded in while a model runs, for who gives a model its memory himself."""

from __future__ import annotations

import ctypes

from openneutron.machine import driver
from openneutron.machine.simulator import filled
from openneutron.microcode.decode import header_of


def least_window(microcode: bytes, weights: bytes, kernels: bytes, where: str = "") -> int:
    """Bytes of the smallest one, as the driver finds them; 0 where constants are stored plain.

    Example:
        >>> least_window(blocks.microcode, blocks.weights, blocks.kernels)
    """
    plain = int(header_of(microcode)["plain_bytes"])
    if plain == 0:
        return 0
    blocks = [filled(block) for block in (microcode, weights, kernels)]
    config = driver.ModelConfig(*(block.pointer for block in blocks), 0)
    sizes = driver.ModelSizes(len(microcode), len(weights), len(kernels), 2**31, 2**31)
    least = ctypes.c_size_t()
    library = driver.library()
    driver.check(
        library.neutronGetLeastContextSize(ctypes.byref(config), ctypes.byref(sizes), ctypes.byref(least)), None, where
    )
    return plain - int(library.neutronGetModelContextSize(blocks[0].pointer, len(microcode)) - least.value)
