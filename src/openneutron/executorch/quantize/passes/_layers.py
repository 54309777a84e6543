"""Layers with constant weights in an ATen graph: where their channels are, and how to replace their constants."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of

_CONVOLUTIONS = frozenset({"aten.conv1d.default", "aten.conv2d.default"})
_TRANSPOSED = frozenset({"aten.conv_transpose1d.default", "aten.conv_transpose2d.input"})
LINEAR = "aten.linear.default"
OPERATORS = _CONVOLUTIONS | _TRANSPOSED | {LINEAR}


@dataclass(frozen=True)
class Layer:
    """A convolution or linear layer; `bias` is None where it has none."""

    node: Node
    weight: Node
    bias: Node | None
    groups: int

    @property
    def channel_axis(self) -> int:
        """The channel dimension of its input and output."""
        return -1 if operator_name(self.node) == LINEAR else 1

    @property
    def output_axis(self) -> int:
        """The weights' dimension of output channels."""
        return 1 if operator_name(self.node) in _TRANSPOSED else 0

    def blocks(self, weight: torch.Tensor) -> torch.Tensor:
        """Return weights as [groups, outputs of a group, inputs of a group, taps]; `from_blocks` is the inverse.

        Example:
            >>> layer.blocks(torch.zeros(8, 1, 3, 3)).shape  # depth-wise
            torch.Size([8, 1, 1, 9])
        """
        first, second = weight.shape[0] // self.groups, weight.shape[1]
        found = weight.reshape(self.groups, first, second, -1)
        return found.transpose(1, 2) if self.output_axis == 1 else found

    def from_blocks(self, blocks: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """Return blocks in the shape of the layer's weights."""
        return (blocks.transpose(1, 2) if self.output_axis == 1 else blocks).reshape(like.shape)


def layer_of(node: Node) -> Layer | None:
    """Return the layer of a node, None unless its weights and bias are constant."""
    if operator_name(node) not in OPERATORS:
        return None
    given = arguments(node)
    weight, bias = given["weight"], given["bias"]
    if not isinstance(weight, Node) or weight.op != "get_attr":
        return None
    if isinstance(bias, Node) and bias.op != "get_attr":
        return None
    return Layer(node, weight, bias, int(given.get("groups") or 1))


def weight_of(model: GraphModule, layer: Layer) -> torch.Tensor:
    """Return a layer's weights."""
    found = tensor_of(model, layer.weight)
    assert found is not None
    return found


def bias_of(model: GraphModule, layer: Layer) -> torch.Tensor | None:
    """Return a layer's bias, None if it has none."""
    return None if layer.bias is None else tensor_of(model, layer.bias)


def give_constants(model: GraphModule, layer: Layer, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
    """Give a layer new constants; the old ones are kept, because other layers or the caller's module may use them."""
    node = layer.node
    with model.graph.inserting_before(node):
        made = add_constant(model, f"_improved_{node.name}_weight", weight)
        added = None if bias is None else add_constant(model, f"_improved_{node.name}_bias", bias)
    arguments_ = list(node.args)
    arguments_[1] = made
    if added is not None:
        if len(arguments_) > 2:
            arguments_[2] = added
        else:
            arguments_.append(added)
    node.args = tuple(arguments_)
    node.kwargs = {name: value for name, value in node.kwargs.items() if name not in ("weight", "bias")}


def output_channels(layer: Layer) -> int:
    """Return the number of output channels."""
    return int(value_of(layer.node).shape[layer.channel_axis])
