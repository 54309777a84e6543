"""Fuse a table into the kernel in front of it, which applies it after requantizing: this saves a pass over memory.

Before:  a = conv2d(x); b = lut(a, table)         (nobody else reads a)
After:   b = conv2d(x, lut=table)

If that kernel is a table or applies one already, the two tables are composed into one.
"""

from __future__ import annotations

import numpy as np

from openneutron.compiler.kernels import abi_of
from openneutron.compiler.l1 import KernelGraph, Node
from openneutron.machine.targets import Target

_OPTIONAL = "lut?"


def takes_table(node: Node) -> bool:
    """Can this kernel apply a table to what it writes?"""
    return _OPTIONAL in abi_of(node.kernel).operands


def _slot(node: Node) -> int | None:
    """Which operand of a kernel is the table applied to its results."""
    roles = abi_of(node.kernel).operands
    if node.kernel == "lut":
        return roles.index("table")
    return roles.index(_OPTIONAL) if takes_table(node) else None


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
        slot = _slot(made)
        if slot is None or consumers.get(source) != [at] or graph.values[source].alias is not None:
            continue
        table = node.operands[abi_of("lut").operands.index("table")]
        before = made.operands[slot]
        assert isinstance(table, np.ndarray) and not isinstance(before, int)
        made.operands[slot] = table if before is None else table[before]
        made.operands[abi_of(made.kernel).operands.index("output")] = node.output
        made.output = node.output
        made.sources = (*made.sources, *node.sources)
        made.notes = (*made.notes, "table fused")
        producers[node.output] = producers[source]
        removed.add(at)
    graph.nodes = [node for at, node in enumerate(graph.nodes) if at not in removed]
    return len(removed)
