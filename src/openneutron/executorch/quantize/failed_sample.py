"""Explain why calibration stopped: which operator failed on a sample, or gave numbers that no scale can store."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node

from openneutron.errors import UnsupportedError
from openneutron.executorch.fx import operator_name, source_line


def failed_sample(
    prepared: GraphModule, batch: tuple[torch.Tensor, ...], number: int, error: Exception
) -> UnsupportedError:
    """Return the error for a sample on which the prepared model raised `error`; runs it once more, node by node.

    Example:
        >>> raise failed_sample(prepared, batch, 0, error) from error
        UnsupportedError: aten.log.default (log, model.py:7) gives minus infinity on calibration sample 0. Hint: ...
    """
    search = _Search(prepared)
    try:
        search.run(*batch)
    except _Found as found:
        return UnsupportedError(
            f"{_name_node(found.node)} gives {found.what} on calibration sample {number}",
            hint="keep its input where the result is finite, as log(x + 1e-6) does, or leave that sample out",
        )
    except Exception as again:
        error = again
    first = (str(error).strip().splitlines() or ["no message"])[0].rstrip(".")
    return UnsupportedError(
        f"{_name_node(search.at)} fails on calibration sample {number}: {type(error).__name__}: {first}",
        hint="run model(*example_inputs) alone to see the whole error",
    )


class _Found(Exception):
    """Raised when a value that is not finite reaches an observer."""

    def __init__(self, node: Node, what: str) -> None:
        super().__init__(what)
        self.node, self.what = node, what


class _Search(Interpreter):
    """Runs the model without its observers, and checks the values they would get."""

    def __init__(self, prepared: GraphModule) -> None:
        super().__init__(prepared)
        self.at: Node | None = None

    def run_node(self, n: Node) -> Any:
        """Run one node and remember it for the error message."""
        self.at = n
        with torch.no_grad():
            return super().run_node(n)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Skip an observer after checking its value."""
        assert self.at is not None
        source = self.at.args[0]
        if isinstance(args[0], torch.Tensor) and isinstance(source, Node) and not bool(torch.isfinite(args[0]).all()):
            raise _Found(source, _kind(args[0]))
        return args[0]


def _kind(value: torch.Tensor) -> str:
    if bool(torch.isnan(value).any()):
        return "NaN"
    return "minus infinity" if bool((value == -torch.inf).any()) else "infinity"


def _name_node(node: Node | None) -> str:
    if node is None:
        return "the model"
    parts = ", ".join(part for part in (node.name, source_line(node)) if part)
    return f"{operator_name(node) or node.op} ({parts})"
