"""Find the samples on which two graphs have different outputs: more samples than are compared region by region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from openneutron.executorch.quantize.check.agreement import difference
from openneutron.executorch.quantize.check.values import Batch, copy_tensors, preserve_state, run_graph
from openneutron.executorch.upstream.names import tree_leaves


def samples_that_differ(model: GraphModule, first: Graph, samples: Sequence[Batch]) -> list[int]:
    """Return the positions of samples on which the module's outputs differ from those of `first`, or are NaN in `first`.

    A state is carried from sample to sample, so the list begins with the first sample of a run.

    Example:
        >>> samples_that_differ(rewritten, original, batches)
        [37]
    """
    wanted = _outputs(model, first, samples)
    if len(wanted) < len(samples):
        return []  # the model fails on its own samples: calibration reports it
    found = _outputs(model, model.graph, samples)
    pairs = enumerate(zip(wanted, found, strict=False))
    different = [at for at, (one, other) in pairs if any(map(_is_nan, one)) or any(map(difference, one, other))]
    return different + list(range(len(found), min(len(found) + 1, len(samples))))


def _outputs(model: GraphModule, graph: Graph, samples: Sequence[Batch]) -> list[list[Any]]:
    """Return the outputs on each sample, up to the first on which the graph fails."""
    found: list[list[Any]] = []

    def visit(node: Node, value: Any) -> Any:
        if node.op == "output":
            found.append(copy_tensors(tree_leaves(value)))
        return value

    with preserve_state(model):
        for sample in samples:
            try:
                run_graph(model, graph, sample, visit)
            except Exception:  # any exception of a model
                break
    return found


def _is_nan(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and bool(torch.isnan(value).any())
