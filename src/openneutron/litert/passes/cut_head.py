"""CutHead: ends a detector where top-k and non-maximum suppression begin.

Before:  boxes, scores = …; kept = NON_MAX_SUPPRESSION_V5(boxes, scores, …); output GATHER(boxes, kept)
After:   outputs boxes and scores
"""

from __future__ import annotations

from typing import Final

from openneutron.litert.graph import Graph
from openneutron.litert.passes.prune_graph import prune_graph

SELECTIONS: Final = frozenset(
    {"TOPK_V2", "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "TFLite_Detection_PostProcess"}
)


def cut_head(graph: Graph) -> tuple[str, ...]:
    """Cut in place; returns the names of the new outputs, () if there is nothing to cut.

    Outputs that do not depend on a selection stay; the others are replaced by the tensors that go into what was cut.
    """
    gone: set[int] = set()
    computed = set(graph.inputs)
    kept, cut = [], []
    for op in graph.operators:
        if op.label in SELECTIONS or gone.intersection(op.inputs):
            gone.update(op.outputs)
            cut.append(op)
            continue
        kept.append(op)
        if computed.intersection(op.inputs):
            computed.update(op.outputs)
    if not cut:
        return ()
    into = [tensor for op in cut for tensor in op.inputs if tensor in computed and tensor not in graph.inputs]
    stays = [one for one in graph.outputs if one not in gone]
    if not stays and not into:  # it is all head
        return ()
    graph.operators[:] = kept
    graph.outputs[:] = dict.fromkeys([*stays, *into])
    prune_graph(graph)
    return tuple(graph.tensors[tensor].name for tensor in graph.outputs)
