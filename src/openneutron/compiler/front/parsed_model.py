"""A parsed model with a cache of what is known of its operators, shared by the compiler and the plan by NXP's rules.

Each operator is checked when the graph is cut and again when the pieces are legalized, and the plan by NXP's rules does both
once more. With thousands of operators the cache saves a fifth of a compile.
"""

from __future__ import annotations

from openneutron.compiler import kernels
from openneutron.compiler.front.unroll_control_flow import ControlFlow
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.signature import OpSignature, of_operator
from openneutron.litert.graph import Graph, Model, Operator
from openneutron.litert.passes.fold_constants import fold_constants
from openneutron.machine.targets import Target
from openneutron.verdict import Verdict


class OperatorCache:
    """Signatures and verdicts of a graph's operators, each computed once. The graph must not change meanwhile.

    `legalized` holds the L1 of groups of operators before any pass: a first compile, a second one with less memory and the plan
    by NXP's rules mostly use the same groups.

    Example:
        >>> OperatorCache(graph, target).verdict(graph.operators[0]).reason
    """

    def __init__(self, graph: Graph, target: Target) -> None:
        self._graph, self._target = graph, target
        self._signatures: dict[Operator, OpSignature] = {}
        self._verdicts: dict[Operator, Verdict] = {}
        self.legalized: dict[tuple[object, ...], KernelGraph] = {}

    def signature(self, op: Operator) -> OpSignature:
        """Return the operator's signature, which limits check."""
        found = self._signatures.get(op)
        if found is None:
            found = self._signatures[op] = of_operator(self._graph, op)
        return found

    def verdict(self, op: Operator) -> Verdict:
        """Return whether the compiler takes the operator; tensors may exceed the memory where they can be streamed."""
        found = self._verdicts.get(op)
        if found is None:
            found = self._verdicts[op] = kernels.check(self.signature(op), self._target, streams=True)
        return found


class ParsedModel:
    """A model and its main graph, which nobody may change. `folded` are operators whose outputs are constants.

    `control_flow` says which loops were unrolled, and why the others stay. `unmatched` are patterns of operators to keep on the
    CPU that name none.
    """

    def __init__(
        self,
        model: Model,
        target: Target,
        control_flow: ControlFlow | None = None,
        unmatched: tuple[str, ...] = (),
    ) -> None:
        self.unmatched = unmatched
        self.model, self.graph, self.control_flow = model, model.main, control_flow or ControlFlow()
        self.folded = frozenset(fold_constants(self.graph))
        self.checks = OperatorCache(self.graph, target)
