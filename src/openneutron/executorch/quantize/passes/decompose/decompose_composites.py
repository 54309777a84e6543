"""DecomposeComposites: replaces operators by PyTorch's own definition of them, before quantization.

Before:  y = einsum("bik,bkj->bij", [a, b])     y = addcmul(a, b, c)     y = glu(x)
After:   y = bmm(a, b) between views            y = a + b * c            y = x[:n] * sigmoid(x[n:])

Left whole, they would be decomposed after quantization and computed in float, or be refused. The definitions are PyTorch's
own, except for those in `_definitions.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from openneutron.executorch.fx import is_static, operator_name, value_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes.decompose._definitions import DEFINITIONS
from openneutron.executorch.upstream.names import definition_of

# Those whose own definition can be quantized.
_NAMES = frozenset(
    f"aten.{name}"
    for name in (
        "addcmul.default", "baddbmm.default", "clip.default", "column_stack.default", "cosine_similarity.default",
        "diff.default", "dstack.default", "einsum.default", "fliplr.default", "flipud.default", "glu.default",
        "hstack.default", "inner.default", "kron.default", "linalg_matrix_norm.str_ord", "linalg_multi_dot.default",
        "linalg_norm.default", "linalg_vector_norm.default", "max.other", "min.other", "movedim.int",
        "movedim.intlist", "outer.default", "pairwise_distance.default", "pixel_unshuffle.default",
        "repeat_interleave.self_int", "rms_norm.default", "rot90.default", "special_erf.default",
        "special_expit.default", "swapaxes.default", "swapdims.default", "tensordot.default", "tile.default",
        "vstack.default",
    )
)  # fmt: skip


def decompose_composites(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten nodes. What a definition uses may be composite itself."""
    count, before = 0, -1
    while count != before:
        before = count
        for node in list(model.graph.nodes):
            name = operator_name(node)
            if (name in _NAMES or name in DEFINITIONS) and is_static(node) and _is_float(node):
                definition = DEFINITIONS.get(name) or definition_of(node.target)
                if definition is not None:
                    inline(model, node, definition)
                    count += 1
    return count


def _is_float(node: Node) -> bool:
    value = value_of(node)
    values = value if isinstance(value, (tuple, list)) else [value]
    return all(isinstance(one, torch.Tensor) and one.dtype == torch.float32 for one in values)


def inline(model: GraphModule, node: Node, definition: Callable[..., Any]) -> None:
    """Replace a node by the operators that `definition` calls with its arguments."""
    sources = list(node.all_input_nodes)
    values = [value_of(source) for source in sources]

    def expand(*tensors: Any) -> Any:
        known = dict(zip(sources, tensors, strict=True))
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda one: known[one])
        return definition(*args, **kwargs)

    mode = values[0].fake_mode
    with mode:
        body = make_fx(expand)(*values).graph
    made: dict[Node, Any] = {}
    inputs = iter(sources)
    call = Insert(model, node)
    for one in body.nodes:
        if one.op == "placeholder":
            made[one] = next(inputs)
        elif one.op == "call_function":
            args, kwargs = torch.fx.node.map_arg((one.args, one.kwargs), lambda source: made[source])
            made[one] = call(one.target, *args, **kwargs)
        elif one.op == "output":
            _replace(model, node, torch.fx.node.map_arg(one.args[0], lambda source: made[source]))
    model.graph.erase_node(node)


def _replace(model: GraphModule, node: Node, result: Any) -> None:
    """Replace a node by a new result: one value, or several that its readers index."""
    if isinstance(result, Node):
        node.replace_all_uses_with(result)
        return
    for user in list(node.users):
        user.replace_all_uses_with(result[user.args[1]])
        model.graph.erase_node(user)
