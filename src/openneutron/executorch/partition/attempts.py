"""Parts of a program lowered on trial, each once: a cluster that becomes a partition alone, or a partition that is cut again
because another one lost a cluster, is lowered already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from torch.fx import Node

from openneutron.compiler.signature import OpSignature, of_operator
from openneutron.compiler.variables import INITIALIZE
from openneutron.executorch.fx import is_dequantize, is_quantize, operator_name
from openneutron.executorch.lower.encoding import Constants, Rejected
from openneutron.executorch.lower.lowering import Lowered, Region, State, lower
from openneutron.executorch.operators import lowerings
from openneutron.options import Options
from openneutron.verdict import Reason, Verdict

Check = Callable[[OpSignature], Verdict]


@dataclass(frozen=True)
class Attempt:
    """What came of lowering a region: the first problem and whose it is, or the result."""

    region: Region
    problem: tuple[Node, Reason] | None = None
    lowered: Lowered | None = None


@dataclass
class Attempts:
    """Lowers parts of one program and asks `check` about every operator.

    Example:
        >>> Attempts(Constants(program), check, options).lower(cluster.nodes).problem
    """

    constants: Constants
    check: Check
    options: Options
    _made: dict[tuple[tuple[Node, ...], tuple[State, ...]], Attempt] = field(default_factory=dict)

    def lower(self, nodes: Sequence[Node], states: Sequence[State] = ()) -> Attempt:
        """Lower nodes, given in the order of their graph, which keep the buffers `states`."""
        key = tuple(nodes), tuple(states)
        if key not in self._made:
            self._made[key] = self._attempt(region_of(nodes, states, self.constants))
        return self._made[key]

    def _attempt(self, region: Region) -> Attempt:
        try:
            lowered = lower(region, self.constants, self.options)
        except Rejected as rejected:
            return Attempt(region, (rejected.node, rejected.reason))
        graph = lowered.model.main
        for position, op in enumerate(graph.operators):
            if op.code == INITIALIZE:  # done when the model is loaded, not by a kernel
                continue
            verdict = self.check(of_operator(graph, op))
            if verdict.reason is not None:
                return Attempt(region, (lowered.nodes[position], verdict.reason))
        return Attempt(region, lowered=lowered)


def region_of(nodes: Sequence[Node], states: Sequence[State], constants: Constants) -> Region:
    """Nodes with what they read and make; of a buffer that they keep nothing enters or leaves."""
    borders = {node for state in states for node in state.borders()}
    kept = {state.read for state in states} | {state.written.args[0] for state in states}
    inputs = [node for node in stored_inputs(nodes, constants) if node not in kept]
    outputs = [node for node in stored_outputs(nodes) if node not in borders]
    return Region(list(nodes), inputs, outputs, tuple(states))


def is_stored(node: Node) -> bool:
    """Whether the node's result is a stored value: quantized, or an integer that its operator makes."""
    rule = lowerings().get(operator_name(node))
    return is_quantize(node) or (rule is not None and rule.stored)


def stored_inputs(nodes: Sequence[Node], constants: Constants) -> list[Node]:
    """The stored values that nodes read from outside, in order of first use."""
    inside = set(nodes)
    found: dict[Node, None] = {}
    for node in nodes:
        if is_dequantize(node):
            source = node.args[0]
            if isinstance(source, Node) and source not in inside and source not in constants:
                found[source] = None
    return list(found)


def stored_outputs(nodes: Sequence[Node]) -> list[Node]:
    """The stored values that something outside reads."""
    inside = set(nodes)
    return [node for node in nodes if is_stored(node) and any(user not in inside for user in node.users)]
