"""Saturated outputs: probabilities of samples whose answers are all clear hide the noise of the values they are made from.

    logits ──► softmax ──► 0.9999, 0.0001: the same in INT8, however far its logits are from float's

Noise d in the difference of two logits moves a probability of a half by d / 4, so an undecided answer has 4 / d² of signal to
noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch.fx import GraphModule, Interpreter, Node

from openneutron.executorch.capture.export import Inputs, one_thread
from openneutron.executorch.fx import arguments, is_dequantize, is_quantize, operator_name
from openneutron.executorch.quantize.accuracy import copy_tensors
from openneutron.executorch.quantize.states import restore, states_of
from openneutron.executorch.upstream.names import tree_leaves
from openneutron.report.accuracy import GOOD
from openneutron.report.model import OutputAccuracy

SAMPLES: Final = 8  # enough for the power of a noise
HIDDEN: Final = 10.0  # dB that an output's figure is above that of undecided answers where samples hide them
_SOFTMAX: Final = frozenset({"aten.softmax.int", "aten._softmax.default"})
_SIGMOID: Final = "aten.sigmoid.default"
_MOVES: Final = frozenset(
    f"aten.{name}" for name in (
        "view.default", "reshape.default", "flatten.using_ints", "permute.default", "transpose.int", "squeeze.dim",
        "squeeze.dims", "unsqueeze.default", "clone.default", "contiguous.default", "alias.default", "select.int",
        "slice.Tensor",
    )
)  # fmt: skip


def saturated_warnings(
    quantized: GraphModule, floating: GraphModule, samples: Sequence[Inputs], outputs: Sequence[OutputAccuracy]
) -> tuple[str, ...]:
    """Return a warning for each output whose good figure comes from clear answers alone.

    Example:
        >>> saturated_warnings(quantized, floating, samples, report.outputs)
        ('output 0: the samples have clear answers only (48.6 dB); …',)
    """
    ends = list(zip(_ends(quantized, len(outputs)), _ends(floating, len(outputs)), strict=True))
    looked_at = [
        (one, ours, right)
        for one, (ours, right) in zip(outputs, ends, strict=True)
        if ours is not None and right is not None and one.sqnr is not None and one.sqnr >= GOOD
    ]
    if not looked_at:
        return ()
    found = _inputs(quantized, [ours for _, ours, _ in looked_at], samples[:SAMPLES])
    wanted = _inputs(floating, [right for _, _, right in looked_at], samples[:SAMPLES])
    warnings = []
    for one, ours, right in looked_at:
        if found[ours].shape != wanted[right].shape:  # a rewrite computes it from other values
            continue
        noise = _noise(right, found[ours], wanted[right])
        undecided = 10 * math.log10(4 / noise) if noise > 0 else math.inf
        if undecided < min(GOOD, one.sqnr - HIDDEN):  # type: ignore[operator]
            name = "sigmoid" if operator_name(right) == _SIGMOID else "softmax"
            warnings.append(
                f"{one.name}: the samples have clear answers only ({one.sqnr:.1f} dB); before its {name}, values differ "
                f"from float's by {math.sqrt(noise):.2g}, which is {undecided:.1f} dB where an answer is undecided; give "
                "calibration samples near the decision, or more 16-bit layers (--quality-cycles)"
            )
    return tuple(warnings)


def _ends(module: GraphModule, count: int) -> list[Node | None]:
    """Return the softmax or sigmoid that makes each of the last outputs, None for those of other operators."""
    (output,) = module.graph.find_nodes(op="output")
    results = [one for one in tree_leaves(output.args[0]) if isinstance(one, Node)]
    if len(results) < count:
        return [None] * count
    return [_end(one) for one in results[len(results) - count :]]


def _end(node: Node) -> Node | None:
    while operator_name(node) not in _SOFTMAX and operator_name(node) != _SIGMOID:
        moved = is_quantize(node) or is_dequantize(node) or operator_name(node) in _MOVES
        before = node.args[0] if moved and node.args else None
        if not isinstance(before, Node):
            return None
        node = before
    return node


class _Reader(Interpreter):
    """Runs a module and keeps what some nodes read."""

    def __init__(self, module: GraphModule, nodes: Sequence[Node]) -> None:
        super().__init__(module)
        self._nodes = set(nodes)
        self.read: dict[Node, list[torch.Tensor]] = {node: [] for node in nodes}

    def run_node(self, n: Node) -> Any:
        if n in self._nodes:
            self.read[n].append(self.env[n.args[0]].detach().double())  # type: ignore[index]
        return super().run_node(n)


def _inputs(module: GraphModule, nodes: Sequence[Node], samples: Sequence[Inputs]) -> dict[Node, torch.Tensor]:
    """Return what the nodes read in all samples."""
    states, reader = states_of(module), _Reader(module, nodes)
    with torch.no_grad(), one_thread():
        for sample in samples:
            reader.run(*copy_tensors(sample))
    restore(module, states)
    return {node: torch.stack(values) for node, values in reader.read.items()}


def _noise(end: Node, found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Return the mean power of the noise in what decides: a sigmoid's input, or the difference of a softmax's two largest."""
    if operator_name(end) == _SIGMOID:
        return float((found - wanted).square().mean())
    dim = int(arguments(end)["dim"])
    dim = dim if dim < 0 else dim + 1  # samples are stacked in front
    if wanted.shape[dim] < 2:
        return 0.0
    largest = wanted.topk(2, dim=dim).indices
    pair = (found - wanted).gather(dim, largest)
    between = pair.select(dim, 0) - pair.select(dim, 1)
    between = between[between.isfinite()]  # a mask may forbid all answers but one
    return float(between.square().mean()) if between.numel() else 0.0
