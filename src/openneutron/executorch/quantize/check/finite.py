"""Detect NaN or infinity that quantization introduces, and choose the operators that must stay in float to avoid it.

Rounding can move a value to the edge of an operator's domain: `atanh` of 0.999999, which INT8 stores as 1, or a division by
a small number that became zero. The operators that compute such inputs stay in float.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node

from openneutron.executorch.fx import is_dequantize, is_quantize
from openneutron.executorch.quantize.check.keep_float import is_infinite
from openneutron.executorch.quantize.check.values import Batch, copy_tensors
from openneutron.executorch.upstream.names import tree_leaves


def may_lose_numbers(quantized: GraphModule) -> bool:
    """Return whether an output can be NaN or infinite: one that is not dequantized is computed in float on the CPU."""
    (output,) = quantized.graph.find_nodes(op="output")
    return not all(is_dequantize(node) for node in output.all_input_nodes)


def loses_numbers(wanted: Sequence[Any], found: Sequence[Any]) -> bool:
    """Return whether a result has NaN or infinity where the float network has a finite number."""
    for one, other in zip(tree_leaves(list(wanted)), tree_leaves(list(found)), strict=True):
        is_float = isinstance(one, torch.Tensor) and one.is_floating_point()
        if is_float and bool((torch.isfinite(one) & ~torch.isfinite(other)).any()):
            return True
    return False


def unsafe_inputs(quantized: GraphModule, batches: Sequence[Batch]) -> tuple[Node | None, list[Node]]:
    """Return the first operator that turns finite inputs into NaN or infinity, and the INT8 operators that compute its
    inputs.
    """
    for batch in batches:
        search = _Search(quantized)
        with torch.no_grad():
            search.run(*copy_tensors(batch))
        if search.found is not None:
            makers = [_maker(source) for source in search.found.all_input_nodes]
            return search.found, [one for one in makers if one is not None and one.op == "call_function"]
    return None, []


def _maker(node: Node) -> Node | None:
    """Return the operator behind a dequantize and its quantize; None for a value that was never quantized."""
    if not is_dequantize(node):
        return None
    source = node.args[0]
    if isinstance(source, Node) and is_quantize(source):
        source = source.args[0]
    return source if isinstance(source, Node) else None


class _Search(Interpreter):
    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.found: Node | None = None

    def run_node(self, n: Node) -> Any:
        """Run one node; remember the first that introduces NaN or infinity."""
        sources = [self.env.get(source) for source in n.all_input_nodes]
        value = super().run_node(n)
        if self.found is None and n.op == "call_function" and is_infinite(value) and not any(map(is_infinite, sources)):
            self.found = n
        return value
