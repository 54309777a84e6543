"""Clusters: groups of nodes connected by float values, which are delegated whole or not at all.

The graph is cut at every stored (INT8 or INT16) value. Each remaining group of dequantizes, operators and quantizes is one
cluster. Inside it values are float and cannot cross the border of a partition.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch.fx import Graph, Node

from openneutron.executorch import ways_out
from openneutron.executorch.fx import (
    GETITEM,
    float_reason,
    is_dequantize,
    is_kept_float,
    is_quantize,
    is_static,
    operator_name,
)
from openneutron.executorch.lower.encoding import Constants
from openneutron.executorch.operators import lowerings
from openneutron.executorch.partition.trial_lowering import TrialLowerings, indices_of, is_stored
from openneutron.litert.codes import VIEWS
from openneutron.verdict import Reason


@dataclass
class Cluster:
    """Nodes in graph order. For a cluster that stays on the CPU, `culprit` is the node to blame and `reason` says why."""

    nodes: list[Node]
    culprit: Node | None = None
    reason: Reason | None = None
    no_op: bool = False
    operators: list[str] = field(default_factory=list)

    @property
    def cores(self) -> list[Node]:
        """The operators, without quantize, dequantize and getitem."""
        return [node for node in self.nodes if not is_border(node) and operator_name(node) != GETITEM]

    @property
    def first(self) -> Node:
        """The node that stands for the cluster in messages: its first operator, if it has one."""
        return self.cores[0] if self.cores else self.nodes[0]

    @property
    def accepted(self) -> bool:
        """Whether it can be delegated."""
        return self.reason is None

    def refuse(self, node: Node, reason: Reason) -> None:
        """Leave the cluster on the CPU because of `node`."""
        self.culprit, self.reason = node, reason


def is_border(node: Node) -> bool:
    """Whether the node is a quantize or dequantize."""
    return is_quantize(node) or is_dequantize(node)


def find_clusters(graph: Graph) -> list[Cluster]:
    """All clusters that lie between stored values on both sides, in graph order.

    A quantize of a program input and a dequantize for a program output belong to none: they are the program's border.
    """
    parent: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while parent[node] is not node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    calls = [node for node in graph.nodes if node.op == "call_function"]
    for node in calls:
        parent[node] = node
        for source in node.all_input_nodes:
            # An edge that carries a stored value ends a cluster: what quantize makes and dequantize reads, and integers.
            if (
                source in parent
                and not is_stored(source)
                and not is_dequantize(node)
                and source not in indices_of(node)
            ):
                parent[root(node)] = root(source)
    groups: dict[Node, list[Node]] = {}
    for node in calls:
        groups.setdefault(root(node), []).append(node)
    return [Cluster(nodes) for nodes in groups.values() if _is_between_stored_values(nodes)]


def _is_between_stored_values(nodes: list[Node]) -> bool:
    return any(is_stored(node) for node in nodes) and any(is_dequantize(node) for node in nodes)


def examine(cluster: Cluster, trials: TrialLowerings) -> None:
    """Lower the cluster without data and `check` each operator; refuse the cluster at the first problem."""
    problem = _float_border(cluster, trials.constants)
    if problem is not None:
        cluster.refuse(*problem)
        return
    trial = trials.lower(cluster.nodes)
    if trial.problem is not None:
        cluster.refuse(*trial.problem)
    elif trial.lowered is not None:
        cluster.operators = [op.code for op in trial.lowered.model.main.operators]
        cluster.no_op = all(code in VIEWS for code in cluster.operators)


def _float_border(cluster: Cluster, constants: Constants) -> tuple[Node, Reason] | None:
    """Find what crosses the cluster's border in float; an operator that nothing lowers is the cause of that where one is."""
    found = _float_value(cluster, constants)
    if found is None or found[1].code not in ("float_input", "float_result"):
        return found
    unknown = [node for node in cluster.cores if not is_known(node)]
    # What makes constants (arange) is there for the operator that reads them.
    unknown.sort(key=lambda node: not node.all_input_nodes)
    return (unknown[0], no_lowering(unknown[0])) if unknown else found


def is_known(node: Node) -> bool:
    """Whether some rule lowers the node's operator, or it needs none."""
    return is_border(node) or operator_name(node) in lowerings() or operator_name(node) == GETITEM


def no_lowering(node: Node) -> Reason:
    """Say that no INT8 form of the operator is known, and what to write instead where something is known."""
    message, hint = ways_out.no_lowering(operator_name(node))
    return Reason("no_lowering", message, node.name, hint)


def _float_value(cluster: Cluster, constants: Constants) -> tuple[Node, Reason] | None:
    inside = set(cluster.nodes)
    for node in cluster.nodes:
        if is_kept_float(node) and not is_border(node):
            return node, float_reason(node)
        if not is_static(node):
            hint = "export with fixed shapes"
            return node, Reason("dynamic_shape", f"its shape is {_shape(node)}, which is not fixed", node.name, hint)
        if is_quantize(node):
            continue
        for user in () if is_stored(node) else node.users:
            if user not in inside:
                what = "the program's output" if user.op == "output" else user.name
                hint = "quantize its readers too"
                return node, Reason("float_result", f"{what} reads its result in float", node.name, hint)
        if is_dequantize(node):
            continue
        for source in node.all_input_nodes:
            if source not in inside and source not in constants and source not in indices_of(node):
                hint = "quantize it, or leave this operator out"
                return node, Reason("float_input", f"its input {source.name} is not quantized", node.name, hint)
    return None


def _shape(node: Node) -> str:
    value = node.meta.get("val")
    return str(list(getattr(value, "shape", ())))
