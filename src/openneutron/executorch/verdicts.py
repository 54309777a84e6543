"""Verdicts: of each node of the program, who runs it and why."""

from __future__ import annotations

from collections.abc import Sequence

from torch.fx import Graph, Node

from openneutron.executorch.clusters import Cluster, is_border
from openneutron.executorch.fx import GETITEM, debug_handles, is_quantize, operator_name, source_line
from openneutron.report.model import Node as Verdict
from openneutron.verdict import Reason

_UNQUANTIZED = "quantize the model with NeutronQuantizer (prepare_pt2e, calibrate, convert_pt2e)"


def verdicts_of(
    graph: Graph, clusters: Sequence[Cluster], partitions: Sequence[Sequence[Cluster]], first: int = 0
) -> list[Verdict]:
    """One verdict per call, in graph order.

    A getitem belongs to the call before it; a quantize or dequantize inside a partition is no node any more, only a
    change of how the values between operators are stored. `first` is the number of the first partition.
    """
    cluster_of = {node: cluster for cluster in clusters for node in cluster.nodes}
    partition_of = {id(cluster): index for index, members in enumerate(partitions, start=first) for cluster in members}
    found = []
    makers: dict[Node, tuple[str, ...]] = {}  # node → the nodes with a verdict whose values it stands for
    for node in graph.nodes:
        inputs = tuple(dict.fromkeys(name for one in node.all_input_nodes for name in makers[one]))
        makers[node] = inputs
        if node.op != "call_function" or operator_name(node) == GETITEM:
            continue
        cluster = cluster_of.get(node)
        partition = partition_of.get(id(cluster), -1)
        if partition >= 0 and is_border(node):
            continue
        makers[node] = (node.name,)
        reason = None if partition >= 0 else _reason(node, cluster)
        found.append(
            Verdict(
                name=node.name,
                operator=operator_name(node),
                delegated=partition >= 0,
                reason=reason.message if reason else "",
                code=reason.code if reason else "",
                hint=reason.hint if reason else "",
                source=source_line(node),
                debug_handle=(debug_handles(node) or (-1,))[0],
                partition=partition,
                inputs=inputs,
            )
        )
    return found


def _reason(node: Node, cluster: Cluster | None) -> Reason:
    if cluster is None:
        if is_border(node):
            what = "quantizes what enters" if is_quantize(node) else "dequantizes what leaves"
            return Reason("border", f"it {what} the quantized part, which is the CPU's part", node.name)
        return Reason("not_quantized", "it computes in float", node.name, _UNQUANTIZED)
    if cluster.reason is None or cluster.culprit is node:
        return cluster.reason or Reason("not_delegated", "its partition was dropped", node.name)
    culprit, reason = cluster.culprit, cluster.reason
    name = culprit.name if culprit is not None else ""
    return Reason(reason.code, f"it belongs together with {name}: {reason.message}", node.name, reason.hint)
