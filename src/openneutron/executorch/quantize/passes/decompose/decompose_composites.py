"""DecomposeComposites: operators that PyTorch itself defines by others are replaced by those, before quantization.

Before:  y = einsum("bik,bkj->bij", [a, b])     y = addcmul(a, b, c)     y = glu(x)
After:   y = bmm(a, b) between views            y = a + b * c            y = x[:n] * sigmoid(x[n:])

Left whole, they would be decomposed after quantization and compute in float. The definitions are PyTorch's own, but for
those that test for infinities or use operators which are not core ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import get_decompositions
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from openneutron.executorch.fx import is_static, operator_name, value_of
from openneutron.executorch.quantize.passes._insert import Insert

_NAMES = frozenset(
    f"aten.{name}"
    for name in (
        "addcmul.default", "baddbmm.default", "cosine_similarity.default", "einsum.default", "glu.default",
        "linalg_vector_norm.default", "outer.default", "pixel_unshuffle.default", "rms_norm.default",
    )
)  # fmt: skip


def _logsumexp(x: torch.Tensor, dim: list[int], keepdim: bool = False) -> torch.Tensor:
    largest = x.amax(dim, True)
    result = (x - largest).exp().sum(dim, True).log() + largest
    return result if keepdim else result.squeeze(tuple(dim))


def _lerp(start: torch.Tensor, end: torch.Tensor, weight: Any) -> torch.Tensor:
    return start + weight * (end - start)


def _spread(x: torch.Tensor, dim: list[int] | None, correction: float, keepdim: bool) -> torch.Tensor:
    dims = list(range(x.dim())) if dim is None else [int(one) for one in dim]
    apart = x - x.mean(dims, True)
    count = math.prod(x.shape[one] for one in dims)
    return (apart * apart).sum(dims, keepdim) * (1.0 / (count - correction))


def _var(x: torch.Tensor, dim: list[int] | None = None, unbiased: bool = True, keepdim: bool = False) -> torch.Tensor:
    return _spread(x, dim, 1.0 if unbiased else 0.0, keepdim)


def _var_corrected(
    x: torch.Tensor, dim: list[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> torch.Tensor:
    return _spread(x, dim, 1.0 if correction is None else float(correction), keepdim)


def _std(*args: Any, **kwargs: Any) -> torch.Tensor:
    return _var(*args, **kwargs).sqrt()


def _std_corrected(*args: Any, **kwargs: Any) -> torch.Tensor:
    return _var_corrected(*args, **kwargs).sqrt()


_OWN: dict[str, Callable[..., Any]] = {
    "aten.lerp.Scalar": _lerp, "aten.lerp.Tensor": _lerp, "aten.logsumexp.default": _logsumexp,
    "aten.var.dim": _var, "aten.var.correction": _var_corrected, "aten.std.dim": _std,
    "aten.std.correction": _std_corrected,
}  # fmt: skip


def decompose_composites(model: GraphModule) -> int:
    """Rewrite in place; returns how many went."""
    count = 0
    for node in list(model.graph.nodes):
        name = operator_name(node)
        if (name in _NAMES or name in _OWN) and is_static(node) and value_of(node).dtype == torch.float32:
            definition = _OWN.get(name) or _definition(node.target)
            if definition is not None:
                inline(model, node, definition)
                count += 1
    return count


def _definition(target: Any) -> Callable[..., Any] | None:
    found = get_decompositions([target]).get(target)
    if found is not None:
        return found
    implicit = torch._C.DispatchKey.CompositeImplicitAutograd
    return target.decompose if target.has_kernel_for_dispatch_key(implicit) else None


def inline(model: GraphModule, node: Node, definition: Callable[..., Any]) -> None:
    """Put what `definition` does with the node's arguments in the node's place."""
    sources = list(node.all_input_nodes)
    values = [value_of(source) for source in sources]

    def traced(*tensors: Any) -> Any:
        known = dict(zip(sources, tensors, strict=True))
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda one: known[one])
        return definition(*args, **kwargs)

    mode = values[0].fake_mode
    with mode:
        body = make_fx(traced)(*values).graph
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
            node.replace_all_uses_with(made[one.args[0]])
    model.graph.erase_node(node)
