"""Legalize: L0 operators become L1 nodes. Asks `kernels.check` first, so a leftover here is an internal error.

Before:  CONV_2D(x, w, b) with scales, padding SAME, fused RELU
After:   conv2d(x, packed weights, channel table) with integer multipliers, shifts, clamps and pads
"""

from __future__ import annotations

from openneutron.compiler import kernels
from openneutron.compiler.front.parsed_model import OperatorCache
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.variables import Variables
from openneutron.errors import InternalError
from openneutron.litert.graph import Graph
from openneutron.machine.targets import Target


def legalize(
    graph: Graph, target: Target, variables: Variables | None = None, checks: OperatorCache | None = None
) -> KernelGraph:
    """Return the L1 of a graph whose operators all pass `kernels.check`; `checks` is the cache of their verdicts.

    Example:
        >>> kernel_graph = legalize(model.main, targets.load("imxrt700"))
    """
    known = checks or OperatorCache(graph, target)
    # The same operators give another L1 where inputs, outputs or variables differ.
    stateful = variables is not None and bool(variables.by_name)
    key = tuple(graph.operators), tuple(graph.inputs), tuple(graph.outputs), stateful
    if key not in known.legalized:
        known.legalized[key] = _legalize_anew(graph, target, variables, known)
    return known.legalized[key].copy()


def _legalize_anew(graph: Graph, target: Target, variables: Variables | None, known: OperatorCache) -> KernelGraph:
    state = Legalizer(graph, target, variables=variables or Variables())
    for tensor in graph.inputs:
        state.add_tensor(tensor, None)
        state.graph.inputs.append(state.values[tensor])
    for index, op in enumerate(graph.operators):
        state.op, state.op_index, state.signature = op, index, known.signature(op)
        verdict, rule = known.verdict(op), kernels.rule_of(op.code)
        if verdict.reason is not None or rule is None:
            raise InternalError(f"operator {index} ({op.code}) reached legalize: {verdict.reason}")
        rule.legalize(state)
    state.graph.outputs = [state.values[tensor] for tensor in graph.outputs]
    state.settle()
    return state.graph
