"""A model opened once for everyone who asks about it: read, constants folded, every operator checked when first asked about.

The compiler asks about each operator when it cuts the graph and when it legalizes the pieces, and the plan by stock rules does
both again: with thousands of operators that is a fifth of a compile.
"""

from __future__ import annotations

from openneutron.compiler import kernels
from openneutron.compiler.front.straighten import Straight
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.signature import OpSignature, of_operator
from openneutron.litert.graph import Graph, Model, Operator
from openneutron.litert.passes.fold_constants import fold_constants
from openneutron.machine.targets import Target
from openneutron.verdict import Verdict


class Checks:
    """Signatures and verdicts of a graph's operators, each found once; the graph does not change meanwhile.

    `legalized` is L1 of groups of them, as it was before any pass: who compiles, who compiles again with less memory, and who
    plans by stock rules mostly ask for the same group.

    Example:
        >>> Checks(graph, target).verdict(graph.operators[0]).reason
    """

    def __init__(self, graph: Graph, target: Target) -> None:
        self._graph, self._target = graph, target
        self._signatures: dict[Operator, OpSignature] = {}
        self._verdicts: dict[Operator, Verdict] = {}
        self.legalized: dict[tuple[object, ...], KernelGraph] = {}

    def signature(self, op: Operator) -> OpSignature:
        """The operator as limits see it."""
        found = self._signatures.get(op)
        if found is None:
            found = self._signatures[op] = of_operator(self._graph, op)
        return found

    def verdict(self, op: Operator) -> Verdict:
        """Whether the compiler takes it; tensors may exceed the memory where rows pass through."""
        found = self._verdicts.get(op)
        if found is None:
            found = self._verdicts[op] = kernels.check(self.signature(op), self._target, streams=True)
        return found


class Opened:
    """A model and its main graph, which nobody may change; `folded` are operators whose outputs are constants.

    `straight` says which loops were unrolled on opening, and why the others stay.
    """

    def __init__(self, model: Model, target: Target, straight: Straight | None = None) -> None:
        self.model, self.graph, self.straight = model, model.main, straight or Straight()
        self.folded = frozenset(fold_constants(self.graph))
        self.checks = Checks(self.graph, target)
