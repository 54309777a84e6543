"""Quick names: what torch and torchao look for anew at each step of a model, remembered while they work.

For each observer torch tries `activation_post_process_0`, `_1`, `_2` … until one is free, and for each parameter it asks a
regular expression about every module beside it. Both take time with the square of a model's layers. Results are the same;
other versions of torch, which may not have these functions, are left as they are.

Example:
    >>> with quick_names():
    ...     prepare_pt2e(module, quantizer)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

import torch

# Where each function is called by the name it was imported under.
_NUMBERED = ("torch.ao.quantization.fx.prepare", "torch.ao.quantization.fx.utils", "torchao.quantization.pt2e.utils")


@contextmanager
def quick_names() -> Iterator[None]:
    """Replace the two searches; what was there comes back at the end."""
    started = []
    for where, name, function in (
        *((module, "get_new_attr_name_with_prefix", _numbered()) for module in _NUMBERED),
        ("torch.export.unflatten", "_is_call_name", is_call_name),
    ):
        module = import_module(where)
        if hasattr(module, name):
            started.append(patch.object(module, name, function))
            started[-1].start()
    try:
        yield
    finally:
        for one in reversed(started):
            one.stop()


def is_call_name(call_name: str, base: str) -> bool:
    """Whether a name is `base`, or `base@7`: another call of the same module."""
    if not call_name.startswith(base):
        return False
    rest = call_name[len(base) :]
    return not rest or (rest[0] == "@" and rest[1:].isdigit())


def _numbered() -> Callable[[str], Callable[[torch.nn.Module], str]]:
    """A maker of searches that go on from the number found last."""
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
