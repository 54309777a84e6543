"""Prices of calls and copies, by the cycle model of `runtime/firmware/machine/`, which the simulator uses too.

Example:
    >>> cycles_of(call_cost("imxrt700", encode_call(call), 0, 32))
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from openneutron.machine import driver, structs
from openneutron.machine.targets import Target


class Cost(NamedTuple):
    """The price of one call in 1/1024 cycle: array time, additional stalls for data, set-up."""

    compute: int
    memory: int
    overhead: int


class Machine:
    """The machine model with other constants than a target file's, for calibration.

    Example:
        >>> trial = dataclasses.replace(target, cost=dataclasses.replace(target.cost, mac=1100))
        >>> call_cost(Machine(trial), encode_call(call), 0, 32)
    """

    def __init__(self, target: Target) -> None:
        self._values = structs.target_values(target)  # the C struct only points to the name
        self._target = driver.MachineTarget(*self._values)
        self.address = ctypes.addressof(self._target)


def _address(target: str | Machine) -> int:
    return driver.target(target) if isinstance(target, str) else target.address


def call_cost(target: str | Machine, call_words: bytes, row0: int, row1: int, stored: int = 0) -> Cost:
    """Return the price of output rows [row0, row1) of one encoded CALL, by the function that the simulator calls.

    `stored` is the coded size of its weights; 0 where they are plain.

    Example:
        >>> cycles_of(call_cost("imxrt700", encode_call(call), 0, 32))
    """
    cost = _price(target, call_words, row0, row1, stored)
    return Cost(cost.compute, cost.memory, cost.overhead)


def call_cycles(target: str | Machine, call_words: bytes, row0: int, row1: int, stored: int = 0) -> int:
    """Return `cycles_of` a `call_cost`, for callers that do not need its parts.

    Example:
        >>> call_cycles("imxrt700", encode_call(call), 0, 32)
    """
    return int(driver.library().nm_cycles(ctypes.byref(_price(target, call_words, row0, row1, stored))))


def _price(target: str | Machine, call_words: bytes, row0: int, row1: int, stored: int) -> driver.MachineCost:
    cost = driver.MachineCost()
    price = driver.library().nm_encoded_call_cost
    driver.check(price(_address(target), call_words, len(call_words) // 4, row0, row1, stored, ctypes.byref(cost)))
    return cost


def dma_cost(target: str | Machine, size: int, stored: int = 0) -> Cost:
    """Return the price of copying `size` bytes; `stored` is their coded size, 0 where they are plain."""
    cost = driver.library().nm_dma_cost(_address(target), size, stored)
    return Cost(cost.compute, cost.memory, cost.overhead)


def cycles_of(cost: tuple[int, int, int]) -> int:
    """Return the whole cycles of a cost, rounded up once per call as in the simulator's timeline."""
    return int(driver.library().nm_cycles(ctypes.byref(driver.MachineCost(*cost))))
