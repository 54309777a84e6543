"""Trial lowerings: parts of a program lowered while partitions are chosen, each part once.

A cluster that becomes a partition alone is lowered already, and so is a partition that is cut again because another one
lost a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch.fx import Node

from openneutron.compiler.signature import OpSignature, of_operator
from openneutron.compiler.variables import INITIALIZE
from openneutron.executorch.fx import is_dequantize, is_quantize, operator_name, value_of
from openneutron.executorch.lower.encoding import INDEX_TYPES, Constants, Rejected
from openneutron.executorch.lower.lowering import Lowered, Region, State, lower
from openneutron.executorch.operators import lowerings
from openneutron.options import Options
from openneutron.verdict import Reason, Verdict

if TYPE_CHECKING:
    from openneutron.executorch.partition.trial_conversion import Outcome
    from openneutron.result import Result

Check = Callable[[OpSignature], Verdict]


@dataclass(eq=False)
class TrialLowering:
    """What lowering a region gave: the lowered model, or the first problem and the node that has it.

    `TrialConversions` adds `outcome` and `result`, the conversion as one graph, when it is asked for them.
    """

    region: Region
    problem: tuple[Node, Reason] | None = None
    lowered: Lowered | None = None
    outcome: Outcome | None = None
    result: Result | None = None


@dataclass
class TrialLowerings:
    """Lowers parts of one program and asks `check` about every operator.

    Example:
        >>> TrialLowerings(Constants(program), check, options).lower(cluster.nodes).problem
    """

    constants: Constants
    check: Check
    options: Options
    _made: dict[tuple[tuple[Node, ...], tuple[State, ...]], TrialLowering] = field(default_factory=dict)

    def lower(self, nodes: Sequence[Node], states: Sequence[State] = ()) -> TrialLowering:
        """Lower nodes, given in the order of their graph, which keep the buffers `states`."""
        key = tuple(nodes), tuple(states)
        if key not in self._made:
            self._made[key] = self._try(region_of(nodes, states, self.constants))
        return self._made[key]

    def _try(self, region: Region) -> TrialLowering:
        try:
            lowered = lower(region, self.constants, self.options)
        except Rejected as rejected:
            return TrialLowering(region, (rejected.node, rejected.reason))
        graph = lowered.model.main
        for position, op in enumerate(graph.operators):
            if op.code == INITIALIZE:  # done when the model is loaded, not by a kernel
                continue
            verdict = self.check(of_operator(graph, op))
            if verdict.reason is not None:
                return TrialLowering(region, (lowered.nodes[position], verdict.reason))
        return TrialLowering(region, lowered=lowered)


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
        for source in node.args[:1] if is_dequantize(node) else indices_of(node):
            if isinstance(source, Node) and source not in inside and source not in constants:
                found[source] = None
    return list(found)


def indices_of(node: Node) -> list[Node]:
    """The integers that a node reads as positions."""
    rule = lowerings().get(operator_name(node))
    if rule is None or not rule.indices:
        return []
    return [source for source in node.all_input_nodes if value_of(source).dtype in INDEX_TYPES]


def stored_outputs(nodes: Sequence[Node]) -> list[Node]:
    """The stored values that something outside reads."""
    inside = set(nodes)
    return [node for node in nodes if is_stored(node) and any(user not in inside for user in node.users)]
