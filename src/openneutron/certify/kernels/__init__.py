"""Rules for microcode: one function per kernel finds the source operator that a call computes and writes its result tags.

To add a kernel, add a file here (or extend one) with a function decorated by `rule`, and make sure that the operators that it
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
    """A kernel's rule and its memory constraints.

    `elementwise`: an input may occupy the bytes of the output; `flat`: pitches are ignored; `keeps`: the kernel updates
    operands in place, so its writes must not overlap.
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
    """Register a function as the rule of these kernels."""

    def wrap(function: Callable[..., None]) -> Callable[..., None]:
        for kernel in kernels:
            RULES[kernel] = Rule(function, elementwise, flat, keeps)
        return function

    return wrap


def load() -> None:
    """Import every file of this folder, so that its rules are registered."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
