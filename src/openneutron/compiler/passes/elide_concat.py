"""Let producers write directly into the tensor that their output is copied into.

Before:  a = conv2d(x); part of y = slice(a) (a plain copy); …
After:   part of y = conv2d(x)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.compiler.kernels import abi_of
from openneutron.compiler.l1 import KernelGraph, Node
from openneutron.machine.targets import Target

if TYPE_CHECKING:
    from openneutron.compiler.kernels.slice import SliceParams


def plain_copy(graph: KernelGraph, node: Node) -> bool:
    """True for a `slice` that copies its whole input, element by element."""
    source = node.operands[0]
    if node.kernel != "slice" or not isinstance(source, int):
        return False
    params: SliceParams = node.params
    same = graph.values[source].shape == graph.values[node.output].shape
    return same and params.first == (0, 0, 0, 0) and params.step == (1, 1, 1, 1)


def elide_concat(graph: KernelGraph, target: Target) -> int:
    """Redirect each producer whose only use is a plain copy into part of another tensor."""
    producers, consumers = graph.producers(), graph.consumers()
    roots = {value.alias.root for value in graph.values if value.alias is not None}
    external = set(graph.inputs) | set(graph.outputs)
    removed: set[int] = set()
    for at, node in enumerate(graph.nodes):
        source = node.operands[0]
        if not isinstance(source, int) or not plain_copy(graph, node) or graph.values[node.output].alias is None:
            continue
        value = graph.values[source]
        if value.alias is not None or value.data is not None or source in roots or source in external:
            continue
        readers = [graph.nodes[n] for n in consumers[source] if n != at]
        if source not in producers:
            continue
        maker = graph.nodes[producers[source]]
        whole = graph.root(node.output)
        if any(graph.root(n.output) == whole for n in readers) or any(graph.root(v) == whole for v in maker.inputs()):
            continue  # one call would read one part and write another of the same rows
        if any(abi_of(n.kernel).dense for n in (maker, *readers)):
            continue
        value.alias = graph.values[node.output].alias
        assert value.alias is not None
        roots.add(value.alias.root)
        removed.add(at)
    graph.nodes = [node for at, node in enumerate(graph.nodes) if at not in removed]
    return len(removed)
