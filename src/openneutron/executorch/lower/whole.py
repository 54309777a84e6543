"""Layers kept whole: many quantized operators that go through ExecuTorch as one call, and are many again when they are lowered.

ExecuTorch's passes retrace a program a dozen times, which for the unrolled steps of a recurrent layer takes most of a
compile. They see `openneutron::whole(inputs, name)` instead, whose body is remembered here under its name.

Example:
    >>> name = remember(body)
    >>> torch.ops.openneutron.whole([x, weight], name)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch.fx import Graph, GraphModule, Interpreter, Node

from openneutron.executorch.fx import value_of

OPERATOR: Final = "openneutron.whole.default"
_numbers = itertools.count()
_bodies: dict[str, Graph] = {}

_library = torch.library.Library("openneutron", "FRAGMENT")
_library.define("whole(Tensor[] inputs, str body) -> Tensor[]")


def remember(body: Graph) -> str:
    """A name for a body: its placeholders are the inputs in order, its output is a tuple of what it makes."""
    name = f"body_{next(_numbers)}"
    _bodies[name] = body
    return name


def body_of(name: str) -> Graph:
    """The body of that name."""
    return _bodies[name]


def forget(name: str) -> None:
    """Drop a body, once the program that names it is lowered."""
    _bodies.pop(name, None)


def placeholders(body: Graph) -> list[Node]:
    """What stands for the inputs, in their order."""
    return [node for node in body.nodes if node.op == "placeholder"]


def results(body: Graph) -> list[Node]:
    """What a body makes, in order."""
    return list(body.output_node().args[0])  # type: ignore[arg-type]


def run(inputs: Sequence[torch.Tensor], body: str) -> list[Any]:
    """Compute the body operator by operator."""
    return list(Interpreter(GraphModule({}, body_of(body))).run(*inputs))


def _shapes(inputs: Sequence[torch.Tensor], body: str) -> list[torch.Tensor]:
    values = map(value_of, results(body_of(body)))
    return [inputs[0].new_empty(value.shape, dtype=value.dtype) for value in values]


_library.impl("whole", run, "CompositeExplicitAutograd")
torch.library.register_fake("openneutron::whole", _shapes, lib=_library)
