"""Keep operators in float that integers cannot represent: those whose rewrite was undone and whose result the steps lose.

A rewrite for INT8 is undone when it changes the model. The original operators can have a range that 256 steps do not
cover, as `scores - 1e4 * distance` has; then they run on the CPU in float.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.node import map_arg

from openneutron.executorch.fx import FloatReason
from openneutron.executorch.quantize.check.values import Batch, copy_tensors

ENOUGH_DB: Final = 25.0  # INT8 layers of a healthy network reach 30 to 45 dB
_STEPS: Final = 255
_WIDE_STEPS: Final = 65535
_FLOAT = "openneutron_not_int8"  # metadata key; nodes that passes derive from the node inherit it


def why_float(node: Node) -> FloatReason | None:
    """Return why the node has to be computed in float: it loses its result in INT8, has infinities or mixed ranges."""
    return node.meta.get(_FLOAT)


def mark_float(node: Node, reason: FloatReason | None = FloatReason.LOSSY) -> None:
    """Note why the annotation is to leave a node in float; None takes the note back."""
    node.meta[_FLOAT] = reason


def forget_float(model: GraphModule) -> None:
    """Remove the marks of nodes that stay in float: a later check sets them again."""
    for node in model.graph.nodes:
        node.meta.pop(_FLOAT, None)


def keep_infinite_float(nodes: Iterable[Node]) -> None:
    """Mark nodes that have infinities or NaN on samples, and their readers: INT8 cannot represent these values."""
    for node in nodes:
        for one in (node, *node.users):
            if one.op == "call_function":
                mark_float(one)


def is_infinite(value: Any) -> bool:
    """Return whether a tensor holds anything but finite numbers."""
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return is_float and not bool(torch.isfinite(value).all())


def keep_lossy_float(
    model: GraphModule,
    nodes: Sequence[Node],
    samples: Sequence[Batch],
    is_wide: Callable[[Node], bool] = lambda node: False,
) -> list[tuple[Node, float]]:
    """Mark the nodes whose results would have less than `ENOUGH_DB`, and the operators before them.

    Results have 256 steps; those that `is_wide` chooses have 65,536.
    Returns the results that were below, each with its SQNR in dB.
    """
    inside = {node for node in nodes if node.op == "call_function"}
    ends = [node for node in inside if any(user not in inside for user in node.users)]
    powers = {node: [0.0, 0.0] for node in ends}
    if not ends:
        return []
    for sample in samples:
        run = _Rounded(model, inside, is_wide)
        run.run(*copy_tensors(sample))
        for node in ends:
            wanted, found = run.pairs.get(node, (None, None))
            if isinstance(wanted, torch.Tensor) and wanted.is_floating_point() and isinstance(found, torch.Tensor):
                wanted, found = torch.nan_to_num(wanted.double()), torch.nan_to_num(found.double())
                powers[node][0] += float(wanted.square().sum())
                powers[node][1] += float((wanted - found).square().sum())
    lost = []
    for node, (signal, noise) in powers.items():
        loss = math.inf if not noise else 10 * math.log10(signal / noise) if signal else -math.inf
        if loss < ENOUGH_DB:
            lost.append((node, loss))
            _mark(node, inside)
    return lost


def _mark(node: Node, inside: set[Node]) -> None:
    if node in inside and why_float(node) is None:
        mark_float(node)
        for source in node.all_input_nodes:
            _mark(source, inside)


class _Rounded(Interpreter):
    """Runs the graph in float, and some of its operators a second time with inputs rounded to 256 steps."""

    def __init__(self, model: GraphModule, inside: set[Node], is_wide: Callable[[Node], bool]) -> None:
        super().__init__(model, graph=model.graph, garbage_collect_values=False)
        self._inside, self._is_wide = inside, is_wide
        self.pairs: dict[Node, tuple[Any, Any]] = {}

    def run_node(self, n: Node) -> Any:
        """Run one node, and again with rounded inputs."""
        value = super().run_node(n)
        if n in self._inside:
            steps = _WIDE_STEPS if self._is_wide(n) else _STEPS
            args, kwargs = map_arg((n.args, n.kwargs), lambda one: self._run_rounded(one, steps))
            assert callable(n.target)
            self.pairs[n] = value, _in_steps(n.target(*args, **kwargs), steps)
        return value

    def _run_rounded(self, node: Node, steps: int) -> Any:
        if node in self.pairs:
            return self.pairs[node][1]
        value = self.env[node]
        return value if node.op == "get_attr" else _in_steps(value, steps)


def _in_steps(value: Any, steps: int) -> Any:
    """Round a float tensor to steps between its smallest and its largest finite value, as integers do."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    finite = value[torch.isfinite(value)]
    low, high = (min(float(finite.amin()), 0.0), max(float(finite.amax()), 0.0)) if finite.numel() else (0.0, 0.0)
    step = (high - low) / steps
    if not step:
        return torch.nan_to_num(value)
    return (torch.nan_to_num(value, nan=0.0, posinf=high, neginf=low).clamp(low, high) / step).round() * step
