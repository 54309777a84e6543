"""Rules of the microcode: one function per kernel says what a call writes, by finding the operator of the source that it is.

To add a kernel, add a file here (or extend one) with a function decorated by `rule`, and see to it that the operators that it
computes have a rule in `certify/operators`. A kernel without a rule is refused by name.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Rule:
    """How a kernel is recognised.

    `elementwise`: an input may lie where the output goes; `flat`: pitches play no part; `keeps`: it changes operands in
    place, so nothing that it writes may overlap.
    """

    function: Callable[[Any, Any, int, int], None]
    elementwise: bool = False
    flat: bool = False
    keeps: bool = False

    def __call__(self, machine: Any, call: Any, first: int, last: int) -> None:
        self.function(machine, call, first, last)


RULES: dict[str, Rule] = {}


def rule(
    *kernels: str, elementwise: bool = False, flat: bool = False, keeps: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a rule for these kernels."""

    def wrap(function: Callable[..., None]) -> Callable[..., None]:
        for kernel in kernels:
            RULES[kernel] = Rule(function, elementwise, flat, keeps)
        return function

    return wrap


def load() -> None:
    """Import every file of this folder."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
