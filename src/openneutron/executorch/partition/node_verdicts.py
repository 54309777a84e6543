"""Verdicts: which processor runs each node of the program, and why."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence

import torch
from torch.fx import Graph, Node

from openneutron.executorch.fx import (
    GETITEM,
    debug_handles,
    float_reason,
    is_kept_float,
    is_quantize,
    layer_of,
    operator_name,
    origin,
    shape_of,
    source_line,
    value_of,
)
from openneutron.executorch.partition.clusters import Cluster, is_border, is_known, no_lowering
from openneutron.executorch.ways_out import VOLUMES, way_out
from openneutron.report.model import NodeVerdict
from openneutron.verdict import Reason

_IMAGE_RANK = 4
_UNQUANTIZED = (
    "give calibration data, or quantize the model with NeutronQuantizer (prepare_pt2e, calibrate, convert_pt2e)"
)


def node_verdicts(
    graph: Graph, clusters: Sequence[Cluster], partitions: Sequence[Sequence[Cluster]], first: int = 0,
    of_states: Collection[Node] = (), constants: Container[Node] = (),
) -> list[NodeVerdict]:  # fmt: skip
    """One verdict per call, in graph order.

    A getitem belongs to the call before it. A quantize or dequantize inside a partition has no verdict, because nothing
    runs for it, nor has one of `of_states`, those of buffers that partitions keep. `first` is the first partition's number.
    `constants` are the placeholders of weights and other constants.
    """
    cluster_of = {node: cluster for cluster in clusters for node in cluster.nodes}
    partition_of = {id(cluster): index for index, members in enumerate(partitions, start=first) for cluster in members}
    found = []
    fixed: set[Node] = set()  # nodes that read constants alone
    makers: dict[Node, tuple[str, ...]] = {}  # node → the nodes with a verdict whose values it stands for
    for node in graph.nodes:
        inputs = tuple(dict.fromkeys(name for one in node.all_input_nodes for name in makers[one]))
        makers[node] = inputs
        if node.op != "placeholder" and all(one in constants or one in fixed for one in node.all_input_nodes):
            fixed.add(node)
        if node.op != "call_function" or operator_name(node) == GETITEM:
            continue
        cluster = cluster_of.get(node)
        partition = partition_of.get(id(cluster), -1)
        if (partition >= 0 and is_border(node)) or node in of_states:
            continue
        makers[node] = (node.name,)
        reason = None if partition >= 0 else _reason(node, cluster)
        found.append(
            NodeVerdict(
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
                origin=origin(node),
                module=layer_of(node),
                constant=node in fixed,
            )
        )
    return found


def _reason(node: Node, cluster: Cluster | None) -> Reason:
    if cluster is None:
        if is_border(node):
            what = "quantizes what enters" if is_quantize(node) else "dequantizes what leaves"
            return Reason("border", f"it {what} the quantized part, which is the CPU's part", node.name)
        return _of_float(node)
    if cluster.reason is None or cluster.culprit is node:
        return cluster.reason or Reason("not_delegated", "its partition was dropped", node.name)
    if not is_known(node):
        return no_lowering(node)
    culprit, reason = cluster.culprit, cluster.reason
    name = (layer_of(culprit) or culprit.name) if culprit is not None else ""
    return Reason(reason.code, f"it belongs together with {name}: {reason.message}", node.name, reason.hint)


def _of_float(node: Node) -> Reason:
    """Why a node outside the quantized part stays on the CPU: no INT8 form, integer data, or not quantized."""
    name = operator_name(node)
    kinds = [value.dtype for value in map(value_of, (*node.all_input_nodes, node)) if isinstance(value, torch.Tensor)]
    other = next((kind for kind in kinds if kind != torch.float32), None)
    if is_kept_float(node):
        return float_reason(node)
    if other is not None:
        what = str(other).removeprefix("torch.")
        if other in (torch.int8, torch.int16):
            hint = "put it behind the dequantize of what it reads, and quantize its result"
            message = f"it works on stored {what.upper()} numbers, the NPU on activations whose scale it knows"
            return Reason("other_type", message, node.name, hint)
        hint = way_out(name).hint or "the CPU does this part; keep it at the program's ends"
        return Reason("other_type", f"it works on {what}, the NPU on INT8 activations", node.name, hint)
    if name == "aten.convolution.default" and len(shape_of(node)) > _IMAGE_RANK:
        message = f"it is {len(shape_of(node)) - 2}-D: {VOLUMES.why}"
        return Reason("one_or_two_dimensions", message, node.name, VOLUMES.hint)
    if not is_known(node):
        return no_lowering(node)
    return Reason("not_quantized", "it computes in float", node.name, _UNQUANTIZED)
