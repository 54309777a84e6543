"""Stacking: in the Edge graph it is a concatenation of unsqueezed tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.operators import annotates

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.stack.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Share the quantization parameters of inputs and output: stored values are copied."""
    a.share_parameters(node, node.args[0])
