"""Layer calls: all quantized operators of one recurrent layer as one call while ExecuTorch's passes look at the program.

These passes retrace a program a dozen times, which for the unrolled steps of a recurrent layer takes most of a
compile. They see `openneutron::whole(inputs, name)` instead. An operator can be given no more than the name of its body, so
bodies are found by name here, as long as the `LayerBodies` of their compile exist.

Example:
    >>> bodies = LayerBodies()
    >>> torch.ops.openneutron.whole([x, weight], bodies.add(body))
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakValueDictionary

import torch
from torch.fx import Graph, GraphModule, Interpreter, Node

from openneutron.errors import InternalError
from openneutron.executorch.fx import value_of

OPERATOR: Final = "openneutron.whole.default"

_library = torch.library.Library("openneutron", "FRAGMENT")
_library.define("whole(Tensor[] inputs, str body) -> Tensor[]")


@dataclass(frozen=True, eq=False)
class LayerBody:
    """A graph whose placeholders are the inputs of the call in order, and whose output is a tuple of its results."""

    name: str
    graph: Graph

    @property
    def placeholders(self) -> list[Node]:
        """The nodes that stand for the inputs, in their order."""
        return [node for node in self.graph.nodes if node.op == "placeholder"]

    @property
    def results(self) -> list[Node]:
        """The nodes whose values the call returns, in order."""
        return list(self.graph.output_node().args[0])  # type: ignore[arg-type]


# Bodies belong to their compile: this only finds them by name.
_numbers = itertools.count()
_named: WeakValueDictionary[str, LayerBody] = WeakValueDictionary()
_lock = threading.Lock()


@dataclass(eq=False)
class LayerBodies:
    """Owns the bodies of one compile's layer calls; a program with such calls is of use as long as this exists."""

    _owned: list[LayerBody] = field(default_factory=list)

    def add(self, graph: Graph) -> str:
        """Keep a body; returns the name under which calls find it."""
        with _lock:
            body = LayerBody(f"body_{next(_numbers)}", graph)
            _named[body.name] = body
        self._owned.append(body)
        return body.name


def find_body(name: str) -> LayerBody:
    """The body of that name; an error says when its compile is over."""
    with _lock:
        body = _named.get(name)
    if body is None:
        raise InternalError(f"the layer call's body {name!r} is gone: the compile that made it has ended")
    return body


def run(inputs: Sequence[torch.Tensor], body: str) -> list[Any]:
    """Compute the body operator by operator."""
    return list(Interpreter(GraphModule({}, find_body(body).graph)).run(*inputs))


def _shapes(inputs: Sequence[torch.Tensor], body: str) -> list[torch.Tensor]:
    values = map(value_of, find_body(body).results)
    return [inputs[0].new_empty(value.shape, dtype=value.dtype) for value in values]


_library.impl("whole", run, "CompositeExplicitAutograd")
torch.library.register_fake("openneutron::whole", _shapes, lib=_library)
