"""Rewrites of the ATen graph before annotation: one file each, in the order of `PASSES`."""

from __future__ import annotations

from collections.abc import Callable

from torch.fx import GraphModule

from openneutron.executorch.passes.aten.remove_dropout import remove_dropout
from openneutron.executorch.passes.aten.replace_scalars import replace_scalars

Pass = Callable[[GraphModule], int]

# Each edits the graph in place and returns how many places it changed.
PASSES: tuple[Pass, ...] = (remove_dropout, replace_scalars)
# In training these must stay: dropout acts.
_EVALUATION_ONLY = frozenset({remove_dropout})


def prepare_for_annotation(model: GraphModule, *, is_qat: bool) -> GraphModule:
    """Run the passes in place; a pass that changed nothing costs one walk over the nodes."""
    changed = 0
    for step in PASSES:
        if not (is_qat and step in _EVALUATION_ONLY):
            changed += step(model)
    if changed:
        model.graph.eliminate_dead_code()
        model.recompile()
    return model
