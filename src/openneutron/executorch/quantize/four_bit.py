"""GroupedWeights: what PT2E places on 4-bit weights; it converts them to INT8 with an integer factor for each group of inputs.

`quantize_per_channel` could not make them: it rounds every weight alone, so a group would have no common factor.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.observer import ObserverBase

from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.upstream.names import load_quantized_operators
from openneutron.litert.grouped_weights import quantize_groups

LEAST_INPUTS = 16  # of a channel: with fewer, a scale for 4 bits takes more than 4 bits save


class GroupedWeights(ObserverBase):
    """Leaves weights as they are until the conversion, which replaces them by INT8 weights and their dequantization.

    Example:
        >>> maker = GroupedWeights.with_args(axis=0, group_size=32, least_scale=2.0**-20)
    """

    def __init__(
        self, dtype: torch.dtype, *, axis: int, group_size: int, least_scale: float, is_dynamic: bool = False, **_: Any
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        self.axis, self.group_size, self.least_scale = axis, group_size, least_scale

    def forward(self, weights: torch.Tensor) -> torch.Tensor:
        """Return the weights."""
        return weights

    def calculate_qparams(self, **_: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Refuse: the scales follow from the weights, in `convert`."""
        raise RuntimeError("4-bit weights get their scales when they are converted")

    def convert(self, model: GraphModule, node: Node) -> None:
        """Replace the observer's node: torchao calls this in place of its own conversion."""
        source = node.args[0]
        assert isinstance(source, Node)
        weights = tensor_of(model, source)
        assert weights is not None, "only constant weights are annotated so"
        values, scales = self.quantize(weights)
        load_quantized_operators()
        with model.graph.inserting_before(node):
            constants = [
                add_constant(model, "weights_4bit", values),
                add_constant(model, "weights_4bit_scale", scales),
                add_constant(model, "weights_4bit_zero_point", torch.zeros(len(scales), dtype=torch.int64)),
            ]
            made = model.graph.call_function(
                torch.ops.quantized_decomposed.dequantize_per_channel.default,
                (*constants, self.axis, -127, 127, torch.int8),
            )
        made.meta = dict(node.meta)
        node.replace_all_uses_with(made)
        model.graph.erase_node(node)

    def quantize(self, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return INT8 weights, and the scale of each channel.

        Example:
            >>> values, scales = observer.quantize(linear.weight)
        """
        # Channels first, inputs last: the other axes are taps of one pixel.
        rows = weights.detach().movedim(self.axis, 0)
        values, scales = quantize_groups(rows.reshape(len(rows), -1).float().numpy(), self.group_size, self.least_scale)
        found = torch.from_numpy(values).reshape(rows.shape).movedim(0, self.axis).contiguous()
        return found, torch.from_numpy(scales)


def fits(shape: torch.Size, channel_axis: int) -> bool:
    """Return whether weights of a linear layer, matrix product or 1x1 convolution can have 4 bits."""
    inputs = shape.numel() // max(shape[channel_axis], 1)
    matrix = len(shape) == 2 or (channel_axis == 0 and all(size == 1 for size in shape[2:]))
    return len(shape) >= 2 and matrix and inputs >= LEAST_INPUTS
