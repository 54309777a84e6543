"""ONNX operators as torch calls: one file per family, found by importing this folder.

A file has functions from a `Call` to the operator's results, registered by `converts`:

    @converts("Conv")
    def conv(call: Call) -> torch.Tensor: ...
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Rule:
    """How one operator is imported.

    `keep`: the call is kept even when all its inputs are constant. `grows`: its result may be much larger than its inputs.
    `structural`: the function works on values (graphs, sequences) rather than on tensors.
    """

    name: str
    domain: str
    function: Callable[..., Any]
    keep: bool = False
    grows: bool = False
    structural: bool = False


_RULES: dict[tuple[str, str], Rule] = {}
# ONNX's own domain, and the one of operators that `fuse` makes.
OWN = "openneutron"
_DEFAULT = ("", "ai.onnx")


def converts(
    *names: str, domain: str = "", keep: bool = False, grows: bool = False, structural: bool = False
) -> Callable[[F], F]:
    """Register the decorated function for these operators of a domain."""

    def wrap(function: F) -> F:
        for name in names:
            if (domain, name) in _RULES and _RULES[domain, name].function.__module__ != function.__module__:
                raise ValueError(f"{name} is registered twice")
            _RULES[domain, name] = Rule(name, domain, function, keep, grows, structural)
        return function

    return wrap


@cache
def rules() -> dict[tuple[str, str], Rule]:
    """Return (domain, operator) → rule, after importing every file of this folder.

    Example:
        >>> rules()["", "Conv"].function.__name__
        'conv'
    """
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            import_module(f"{__name__}.{module.name}")
    return dict(sorted(_RULES.items()))


def rule_for(domain: str, name: str) -> Rule | None:
    """Return the rule of an operator, None if there is none."""
    return rules().get(("" if domain in _DEFAULT else domain, name))
