"""Fuse a table into the kernel in front of it, after its requantize: the function costs no pass over memory.

Before:  a = conv2d(x); b = lut(a, table)         (nobody else reads a)
After:   b = conv2d(x, lut=table)
"""

from __future__ import annotations

from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.names import abi_of
from openneutron.targets import Target


def fuse_lut(graph: KernelGraph, target: Target) -> int:
    """Fold each `lut` node whose input is made by a kernel that takes a table and is read by nobody else."""
    producers, consumers = graph.producers(), graph.consumers()
    aliased = {value.alias.root for value in graph.values if value.alias is not None}
    outputs = set(graph.outputs)
    removed: set[int] = set()
    for at, node in enumerate(graph.nodes):
        if node.kernel != "lut":
            continue
        source = node.operands[0]
        if not isinstance(source, int) or source not in producers or source in outputs or source in aliased:
            continue
        made = graph.nodes[producers[source]]
        roles = abi_of(made.kernel).operands
        if "lut?" not in roles or consumers.get(source) != [at] or graph.values[source].alias is not None:
            continue
        slot = roles.index("lut?")
        if made.operands[slot] is not None:
            continue
        made.operands[slot] = node.operands[abi_of("lut").operands.index("table")]
        made.operands[roles.index("output")] = node.output
        made.output = node.output
        made.sources = (*made.sources, *node.sources)
        made.notes = (*made.notes, "table fused")
        producers[node.output] = producers[source]
        removed.add(at)
    graph.nodes = [node for at, node in enumerate(graph.nodes) if at not in removed]
    return len(removed)
