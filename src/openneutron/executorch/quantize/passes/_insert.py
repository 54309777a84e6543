"""Insertion of new calls into an ATen graph, with the values and metadata that later passes need."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from openneutron.executorch.fx import value_of

# Metadata that describes the replaced node's value rather than its origin.
_OF_THE_VALUE = frozenset({"val", "tensor_meta", "example_value"})


# Nodes that are the same operator in different steps of a recurrent layer share one role and one observer.
ROLE_KEY = "openneutron_role"
# Nodes whose values are 0 or 1: an observer could cut the ones off where zeros are more frequent.
MASK_KEY = "openneutron_mask"
# Products and the sum that take one of two values as a whole: (a * keep) + (b * drop) with one 0 or 1 for everything.
CHOICE_KEY = "openneutron_choice"
# The names of the nodes that a node has replaced, one after the other: what was chosen for these by name is meant for it.
_REPLACED_KEY = "openneutron_replaced"


def stable_name(node: Node, what: str) -> str:
    """Return a name for a node that a rewrite makes in place of another one.

    Names that fx counts for the whole graph change with every rewrite elsewhere, and a choice made by name in one quantization
    would mean another node in the next.

    Example:
        >>> stable_name(hard_swish, "mul")
        'hardswish_2_mul'
    """
    return f"{(*replaced_names(node), node.name)[0]}_{what}"


def replaced_names(node: Node) -> tuple[str, ...]:
    """Return the names of the nodes that a node has replaced, the first one first."""
    return tuple(node.meta.get(_REPLACED_KEY, ()))


def meta_in_place_of(node: Node) -> dict[str, Any]:
    """Return the metadata of a node that takes another one's place: where it comes from, and that one's names."""
    return {**node.meta, _REPLACED_KEY: (*replaced_names(node), node.name)}


class Insert:
    """Inserts calls before `node`; they get its source line and module path, and their shapes.

    Example:
        >>> call = Insert(model, node)
        >>> scaled = call(torch.ops.aten.mul.Tensor, node.args[0], 0.5)
    """

    def __init__(self, model: GraphModule, node: Node) -> None:
        self.model = model
        self.node = node
        self.mode = _mode(value_of(node))
        self.role: list[Any] = []  # for the nodes made from here on; equal roles share quantization parameters
        self._values: dict[Any, Any] = {}  # by role: all steps have values of the same shape

    def __call__(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """Insert a call and return its node."""
        with self.model.graph.inserting_before(self.node):
            name = stable_name(self.node, str(target).split(".")[1] if "." in str(target) else "call")
            made = self.model.graph.create_node("call_function", target, args, kwargs, name=name)
        made.meta = {key: value for key, value in meta_in_place_of(self.node).items() if key not in _OF_THE_VALUE}
        if self.role:
            self.role[-1] += 1
            made.meta[ROLE_KEY] = role = tuple(self.role)
            if role not in self._values:
                self._values[role] = self._value(target, args, kwargs)
            value = self._values[role]
        else:
            value = self._value(target, args, kwargs)
        if value is not None:
            made.meta["val"] = value
        return made

    def _value(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return what a call makes, as fake tensors; None if the program has none."""
        if self.mode is None:
            return None
        with self.mode:
            return target(*map_arg(args, value_of), **map_arg(kwargs, value_of))


def _mode(value: Any) -> Any:
    """Return the mode of a fake tensor, or of the first of several."""
    first = value[0] if isinstance(value, (tuple, list)) and value else value
    return getattr(first, "fake_mode", None)


def is_zero(model: GraphModule, node: Any) -> bool:
    """Return whether a node is known to be zero everywhere: a zero attribute, or a call that makes zeros."""
    from openneutron.executorch.fx import operator_name
    from openneutron.executorch.quantize.passes._attributes import tensor_of

    if not isinstance(node, Node):
        return False
    if operator_name(node) in ("aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default"):
        return True
    if operator_name(node) == "aten.full.default":
        return node.args[1] == 0
    data = tensor_of(model, node)
    return data is not None and not bool(torch.any(data))
