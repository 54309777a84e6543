"""Runs the rewrites of LiteRT graphs that remove transposes and requantizations left by lowering, in the order of `PASSES`.

A pass edits the graph in place and returns how many places it changed. Operators keep their identity, so lists that
run parallel to them can be brought up to date afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from openneutron.errors import OptionError
from openneutron.litert.graph import Graph, Model
from openneutron.litert.passes.drop_requantize import drop_requantize
from openneutron.litert.passes.fuse_transposes import fuse_transposes
from openneutron.litert.passes.permute_fc_weights import permute_fc_weights
from openneutron.litert.passes.prune_graph import prune_graph

Pass = Callable[[Graph], int]

PASSES: dict[str, Pass] = {
    one.__name__: one for one in (fuse_transposes, permute_fc_weights, drop_requantize, prune_graph)
}
# Removes what the other passes leave without readers, so it cannot be switched off.
_ALWAYS = frozenset({"prune_graph"})


def run_passes(model: Model, off: Collection[str] = ()) -> dict[str, int]:
    """Run every pass whose name is not in `off`; returns the changes of each.

    Example:
        >>> run_passes(model, off=("fuse_transposes",))
        {'permute_fc_weights': 1, 'drop_requantize': 0, 'prune_graph': 3}
    """
    for name in _ALWAYS & set(off):
        raise OptionError(f"the pass {name} cannot be switched off")
    return {name: sum(step(graph) for graph in model.graphs) for name, step in PASSES.items() if name not in off}
