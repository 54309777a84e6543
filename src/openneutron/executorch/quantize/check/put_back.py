"""Undo a rewrite in some regions: the original operators are inserted again in front of their readers."""

from __future__ import annotations

from collections.abc import Sequence

from torch.fx import Graph, Node
from torch.fx.node import map_arg

from openneutron.executorch.quantize.check.regions import Boundary, Call, edited_nodes
from openneutron.executorch.upstream.names import is_erased


def put_back(
    graph: Graph, before: dict[Node, Call], found: Sequence[Boundary], wrong: Sequence[Boundary]
) -> list[Node]:
    """Restore the original operators for the readers of `wrong`; returns the restored operators.

    Other regions stay rewritten. `before` is the snapshot, `found` are all boundaries of the pass. The caller checks the
    graph afterwards, and undoes the whole pass if that fails.
    """
    restorer = _Restorer(graph, before, found, wrong)
    place = {node: at for at, node in enumerate(graph.nodes)}
    for one in sorted(wrong, key=lambda one: min((place[reader] for reader in one.readers), default=0)):
        if not one.readers:
            continue
        restorer.here = min(one.readers, key=place.__getitem__)
        restored = restorer.node(one.old)
        for reader in one.readers:
            reader.replace_input_with(one.new, restored)
    graph.eliminate_dead_code()
    graph.lint()
    return [node for node in restorer.made if not is_erased(node)]


class _Restorer:
    """Inserts nodes of a snapshot into the graph, in front of `here`."""

    def __init__(
        self, graph: Graph, before: dict[Node, Call], found: Sequence[Boundary], wrong: Sequence[Boundary]
    ) -> None:
        self._graph, self._before = graph, before
        self._edited = set(edited_nodes(before, graph))
        self._bad = {one.old for one in wrong}
        self._stands: dict[Node, Node] = {}
        for one in found:
            if one.old not in self._bad:
                self._stands.setdefault(one.old, one.new)
        self._known: dict[Node, Node] = {}
        self.made: list[Node] = []
        self.here: Node = next(iter(graph.nodes))

    def node(self, old: Node) -> Node:
        """Return a node that computes the value of `old`."""
        if old in self._stands:
            return self._stands[old]
        if not is_erased(old) and old not in self._edited:
            return old
        if old not in self._known:
            call = self._before[old]
            args, kwargs = map_arg((call.args, call.kwargs), self.node)
            with self._graph.inserting_before(self.here):
                made = self._graph.create_node(old.op, call.target, args, kwargs, name=old.name)
            made.meta = dict(old.meta)
            self._known[old] = made
            self.made.append(made)
        return self._known[old]
