"""Cut a graph into partitions: linear in its size, and without cycles by construction.

Levels: a cluster's level is the largest of its delegated predecessors' levels and of its CPU predecessors' levels plus
one; a CPU node's level is the largest of its predecessors'. Levels never fall along an edge and rise on the way from a
partition over the CPU back to a partition, so the clusters of one level form a partition no path leaves and re-enters.
It may join clusters that are not connected: one call of the delegate instead of two. (Kahn's order on the graph with
clusters contracted; a cluster on a cycle of that graph cannot run in one go and is left out.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from torch.fx import Graph, Node

from openneutron.executorch.partition.clusters import Cluster
from openneutron.verdict import Reason


def cut(graph: Graph, clusters: Sequence[Cluster]) -> list[list[Cluster]]:
    """Partitions of the accepted clusters, in execution order; a cluster that closes a cycle is refused."""
    while True:
        accepted = [cluster for cluster in clusters if cluster.accepted]
        levels, cyclic = _levels(graph, accepted)
        if cyclic is None:
            break
        hint = "the other operators of the cycle run on the CPU; see their reasons"
        culprit = cyclic.cores[0] if cyclic.cores else cyclic.nodes[0]
        cyclic.refuse(culprit, Reason("cycle", "part of it waits for what the rest makes", culprit.name, hint))
    groups: dict[int, list[Cluster]] = {}
    for cluster, level in zip(accepted, levels, strict=True):
        groups.setdefault(level, []).append(cluster)
    return [groups[level] for level in sorted(groups)]


def _levels(graph: Graph, clusters: Sequence[Cluster]) -> tuple[list[int], Cluster | None]:
    """Level of each cluster, or the first cluster on a cycle."""
    unit_of: dict[Node, int] = {node: index for index, cluster in enumerate(clusters) for node in cluster.nodes}
    count = len(clusters)
    for node in graph.nodes:
        if node.op == "call_function" and node not in unit_of:
            unit_of[node] = count
            count += 1
    successors: list[set[int]] = [set() for _ in range(count)]
    waiting = [0] * count
    for node, unit in unit_of.items():
        for source in node.all_input_nodes:
            before = unit_of.get(source, unit)
            if before != unit and unit not in successors[before]:
                successors[before].add(unit)
                waiting[unit] += 1
    # -1: nothing delegated comes before. Only the CPU has that level.
    level = [0 if unit < len(clusters) else -1 for unit in range(count)]
    ready = deque(unit for unit in range(count) if not waiting[unit])
    done = 0
    while ready:
        unit = ready.popleft()
        done += 1
        from_cpu = unit >= len(clusters)
        for after in successors[unit]:
            rise = 1 if from_cpu and after < len(clusters) else 0
            level[after] = max(level[after], level[unit] + rise)
            waiting[after] -= 1
            if not waiting[after]:
                ready.append(after)
    if done == count:
        return level[: len(clusters)], None
    return [], next(cluster for index, cluster in enumerate(clusters) if waiting[index])


def split(members: Sequence[Cluster], piece_of: dict[Node, int]) -> list[list[Cluster]]:
    """A partition in pieces that run one after the other: each cluster in the last of its nodes' pieces, none before
    what makes its inputs.

    Example:
        >>> split(members, {conv: 0, expand: 1})
    """
    cluster_of = {node: cluster for cluster in members for node in cluster.nodes}
    pieces = {id(cluster): max((piece_of.get(node, 0) for node in cluster.nodes), default=0) for cluster in members}
    changed = True
    while changed:
        changed = False
        for node, cluster in cluster_of.items():
            for source in node.all_input_nodes:
                maker = cluster_of.get(source, cluster)
                if pieces[id(maker)] > pieces[id(cluster)]:
                    pieces[id(cluster)] = pieces[id(maker)]
                    changed = True
    groups: dict[int, list[Cluster]] = {}
    for cluster in members:
        groups.setdefault(pieces[id(cluster)], []).append(cluster)
    return [groups[number] for number in sorted(groups)]
