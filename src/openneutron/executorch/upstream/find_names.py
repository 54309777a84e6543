"""Find free names and calls of modules without a search over all of them.

Replaces: `get_new_attr_name_with_prefix` of torch and torchao, which for each observer tries
`activation_post_process_0`, `_1`, `_2` … until one is free; and `_is_call_name` of torch.export, which asks a regular
expression about every module for each parameter. Both take time with the square of a model's layers.
Saves: see `python benchmarks/upstream.py`; the more layers, the more.
Knows: torch 2.13, torchao 0.18.
Otherwise: their own searches.

Example:
    >>> with find_names():
    ...     prepare_pt2e(module, quantizer)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

import torch

from openneutron.executorch.upstream.switch import Expected, replaces

_NUMBERED = "get_new_attr_name_with_prefix"
# The modules that call it, by the name that they imported it under.
_CALLERS = ("torch.ao.quantization.fx.prepare", "torch.ao.quantization.fx.utils", "torchao.quantization.pt2e.utils")


@replaces(
    "torchao",
    *(Expected(caller, _NUMBERED, ("prefix",)) for caller in _CALLERS),
    Expected("torch.export.unflatten", "_is_call_name", ("call_name", "base")),
)
def find_names() -> Iterator[None]:
    """Replace both searches."""
    with ExitStack() as replaced:
        for caller in _CALLERS:
            replaced.enter_context(patch.object(import_module(caller), _NUMBERED, _continue_numbers()))
        replaced.enter_context(patch("torch.export.unflatten._is_call_name", is_call_name))
        yield


def is_call_name(call_name: str, base: str) -> bool:
    """Whether a name is `base`, or `base@7`: another call of the same module."""
    if not call_name.startswith(base):
        return False
    rest = call_name[len(base) :]
    return not rest or (rest[0] == "@" and rest[1:].isdigit())


def _continue_numbers() -> Callable[[str], Callable[[torch.nn.Module], str]]:
    """A replacement of the function; its searches continue from the number found last."""
    last: WeakKeyDictionary[torch.nn.Module, dict[str, int]] = WeakKeyDictionary()

    def with_prefix(prefix: str) -> Callable[[torch.nn.Module], str]:
        prefix = prefix.replace(".", "_")

        def free(module: torch.nn.Module) -> str:
            numbers: dict[str, Any] = last.setdefault(module, {})
            number = numbers.get(prefix, 0)
            if number and not hasattr(module, f"{prefix}{number - 1}"):
                number = 0  # some were removed: their numbers are free again
            while hasattr(module, f"{prefix}{number}"):
                number += 1
            numbers[prefix] = number + 1
            return f"{prefix}{number}"

        return free

    return with_prefix
