"""FoldConstants: computes at compile time what depends only on parameters, so that it can be quantized as a weight.

Values changed in place are folded too, as attention masks are: `zeros_like(m).masked_fill_(m, -inf)`.

Before:  w = mul(get_attr(g), get_attr(v)); y = conv2d(x, w)
After:   w = get_attr(_folded_0); y = conv2d(x, w)
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import GETITEM, is_view, operator_name
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import ROLE_KEY
from openneutron.executorch.upstream.names import OpOverload, schema_of

# Largest result of ones, arange and the like that is stored as a constant: 64 KiB as INT8.
_LARGEST_FILLED = 1 << 16


def fold_constants(model: GraphModule) -> int:
    """Fold in place; returns the number of folded calls. Random and mutating operators stay."""
    known: dict[Node, Any] = {}  # tensors, and the several that an operator such as meshgrid makes
    folded: dict[Node, None] = {}
    changing = _changed_elsewhere(model)
    for node in model.graph.nodes:
        # The first step of a loop must stay equal to the others, though it begins with a constant.
        if node in changing or ROLE_KEY in node.meta or _is_new_state(node):
            continue
        data = tensor_of(model, node)
        if data is not None:
            known[node] = data
        elif (
            (_is_pure(node) or _changes_only(node, folded))
            and _is_small(node)
            and all(source in known for source in node.all_input_nodes)
        ):
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda source: _copy_of(known[source]))
            with torch.no_grad():
                made = node.target(*args, **kwargs)
            if isinstance(made, torch.Tensor):
                known[node] = made.detach()
                folded[node] = None
            elif isinstance(made, (tuple, list)) and all(isinstance(one, torch.Tensor) for one in made):
                known[node] = [one.detach() for one in made]
    for node in folded:
        if any(user not in known for user in node.users):
            with model.graph.inserting_before(node):
                constant = add_constant(model, "_folded", known[node].contiguous().clone())
            for user in [user for user in node.users if user not in known]:
                user.replace_input_with(node, constant)
    for node in reversed(folded):
        # In-place operators survive dead code removal, and would be quantized although nothing reads them.
        if not node.users and not _is_pure(node):
            model.graph.erase_node(node)
    return len(folded)


def _copy_of(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else [one.clone() for one in value]


def _is_new_state(node: Node) -> bool:
    """Return whether a state becomes this value: ExecuTorch writes back only what an operator makes."""
    return node.op == "call_function" and any(
        operator_name(user) == "aten.copy_.default" and user.args[1] is node for user in node.users
    )


def _is_small(node: Node) -> bool:
    """Return whether the result is small enough to store; results that depend on parameters always are."""
    if node.all_input_nodes:
        return True
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.numel() <= _LARGEST_FILLED


def _changed_elsewhere(model: GraphModule) -> set[Node]:
    """Return the values that an in-place operator changes while others see them: through a view, or as another reader."""
    found: set[Node] = set()
    for node in model.graph.nodes:
        schema = schema_of(node.target)
        if node.op != "call_function" or schema is None or not schema.is_mutable or not node.args:
            continue
        chain = [node.args[0]]
        while isinstance(chain[-1], Node) and is_view(chain[-1]):
            chain.append(chain[-1].args[0])
        if len(chain) > 1 or (isinstance(chain[0], Node) and len(chain[0].users) > 1):
            found.update(one for one in chain if isinstance(one, Node))
    return found


def _changes_only(node: Node, folded: dict[Node, None]) -> bool:
    """Return whether an in-place operator changes only a value that is folded itself and has no other reader."""
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return False
    changed = node.args[0] if node.args else None
    mutates = [
        argument.alias_info is not None and argument.alias_info.is_write
        for argument in schema_of(node.target).arguments
    ]
    alone = isinstance(changed, Node) and changed in folded and len(changed.users) == 1
    return alone and mutates[:1] == [True] and sum(mutates) == 1


def _is_pure(node: Node) -> bool:
    if operator_name(node) == GETITEM:
        return True
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return False
    schema = schema_of(node.target)
    return not schema.is_mutable and torch.Tag.nondeterministic_seeded not in node.target.tags
