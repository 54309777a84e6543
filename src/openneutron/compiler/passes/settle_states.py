"""Copy states at the end of a run where writing them earlier would overwrite a value that is still read.

Before:  s' = conv(x); y = add(s, s')          (s and s' are the same bytes: a state before and after the run)
After:   t = conv(x); y = add(s, t); s' = copy(t)
"""

from __future__ import annotations

from openneutron.compiler.kernels.copy import copy_node
from openneutron.compiler.l1 import KernelGraph, Value
from openneutron.machine.targets import Target


def settle_states(graph: KernelGraph, target: Target) -> int:
    """Add a copy for each state that would be written too early; returns how many."""
    copies = 0
    for state in graph.states:
        if state.output < 0:
            continue
        read, written = graph.inputs[state.input], graph.root(graph.outputs[state.output])
        readers = [at for at, node in enumerate(graph.nodes) if any(graph.root(v) == read for v in node.inputs())]
        writers = [at for at, node in enumerate(graph.nodes) if graph.root(node.output) == written]
        if readers and writers and min(writers) <= max(readers) and not _in_place(graph, read, readers, writers):
            source = graph.outputs[state.output]
            v = graph.values[source]
            made = graph.add_value(Value(f"{v.name} (kept)", v.shape, v.dtype, v.scale, v.zero_point, v.tensor))
            graph.nodes.append(copy_node(graph, source, made))
            graph.outputs[state.output] = made
            writers = [len(graph.nodes) - 1]
            copies += 1
        for at in writers:
            # Not streamed: in one segment with a reader it would overwrite rows before they are read.
            graph.nodes[at].demand = None
    return copies


def _in_place(graph: KernelGraph, read: int, readers: list[int], writers: list[int]) -> bool:
    """Return whether the only writer is the state's last reader, and may overwrite what it reads."""
    node = graph.nodes[writers[-1]]
    reads = [at for at, value in enumerate(node.operands) if isinstance(value, int) and graph.root(value) == read]
    return len(writers) == 1 and max(readers) == writers[0] and len(reads) == 1 and reads[0] in node.in_place
