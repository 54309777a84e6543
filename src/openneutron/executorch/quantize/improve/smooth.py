"""SmoothNorms: scales down the channels of a layer norm that are much larger than others (SmoothQuant, Xiao 2023).

Before:  n = layer_norm(x, g, b);      q, k, v = n @ wq, n @ wk, n @ wv
After:   n = layer_norm(x, g/s, b/s);  q, k, v = n @ (wq s), n @ (wk s), n @ (wv s)

In float both are the same. s = sqrt(largest value of the channel / largest weight that reads it): one scale per tensor
then has enough steps for small channels too. The largest values are measured on a few samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch.fx import GraphModule, Interpreter, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._layers import LINEAR, Layer, bias_of, give_constants, layer_of, weight_of

SAMPLES: Final = 32  # enough samples of many tokens for a stable maximum of each channel
STRENGTH: Final = 0.5  # the paper's alpha: half of the difference moves into the weights
_NORM = "aten.layer_norm.default"
# Operators between a norm and its readers that keep the last dimension.
_PASSES = frozenset(
    {"aten.transpose.int", "aten.permute.default", "aten.clone.default", "aten.contiguous.default",
     "aten.dropout.default", "aten.view.default", "aten.reshape.default", "aten.unsqueeze.default"}
)  # fmt: skip


def smooth(model: GraphModule, batches: Sequence[tuple[torch.Tensor, ...]]) -> int:
    """Smooth in place with the largest values on some samples; returns how many norms changed.

    Example:
        >>> smooth(module, [(tokens,)])
        2
    """
    norms = {node: readers for node in model.graph.nodes if (readers := _readers(model, node))}
    if not norms:
        return 0
    loud = _Loudest(model, set(norms))
    with torch.no_grad():
        for batch in batches[:SAMPLES]:
            loud.run(*batch)
    for norm, readers in norms.items():
        _smooth(model, norm, readers, loud.found[norm])
    model.graph.eliminate_dead_code()
    model.recompile()
    return len(norms)


def _readers(model: GraphModule, norm: Node) -> list[Layer]:
    """Return the linear layers that read a norm's result, [] if anything else reads it."""
    if operator_name(norm) != _NORM:
        return []
    given = arguments(norm)
    affine = [given["weight"], given["bias"]]
    if len(given["normalized_shape"]) != 1 or not all(isinstance(one, Node) and one.op == "get_attr" for one in affine):
        return []
    found: list[Layer] = []
    waiting = [norm]
    while waiting:
        node = waiting.pop()
        for reader in node.users:
            layer = layer_of(reader)
            if layer is not None and operator_name(reader) == LINEAR and reader.args[0] is node:
                found.append(layer)
            elif operator_name(reader) in _PASSES and _keeps_last(reader):
                waiting.append(reader)
            else:
                return []
    shared = [
        n for n in model.graph.nodes if (other := layer_of(n)) is not None for f in found if f.weight is other.weight
    ]
    return found if len(shared) == len(found) else []


def _keeps_last(node: Node) -> bool:
    before, after = value_of(node.args[0]), value_of(node)  # type: ignore[arg-type]
    if before is None or after is None or before.shape[-1] != after.shape[-1]:
        return False
    given, rank = arguments(node), before.dim()
    if operator_name(node) == "aten.transpose.int":
        return rank - 1 not in (given["dim0"] % rank, given["dim1"] % rank)
    if operator_name(node) == "aten.permute.default":
        return int(given["dims"][-1]) % rank == rank - 1
    return operator_name(node) != "aten.unsqueeze.default" or int(given["dim"]) % (rank + 1) != rank


class _Loudest(Interpreter):
    """Records the largest magnitude of each channel of some nodes."""

    def __init__(self, model: GraphModule, nodes: set[Node]) -> None:
        super().__init__(model)
        self._nodes = nodes
        self.found: dict[Node, torch.Tensor] = {}

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if n in self._nodes:
            most = value.abs().reshape(-1, value.shape[-1]).amax(0).double()
            self.found[n] = torch.maximum(self.found[n], most) if n in self.found else most
        return value


def _smooth(model: GraphModule, norm: Node, readers: list[Layer], loud: torch.Tensor) -> None:
    weights = [weight_of(model, layer) for layer in readers]
    read = torch.stack([weight.double().abs().amax(0) for weight in weights]).amax(0)
    used = (loud > 0) & (read > 0)
    ratio = torch.where(used, loud, 1.0) ** STRENGTH / torch.where(used, read, 1.0) ** (1 - STRENGTH)
    # Only the ratios between channels matter; normalised to 1 they keep the norm's constants in their range.
    scale = torch.where(used, ratio / ratio[used].log().mean().exp() if bool(used.any()) else ratio, 1.0)
    for layer, weight in zip(readers, weights, strict=True):
        give_constants(model, layer, (weight.double() * scale).to(weight.dtype), bias_of(model, layer))
    given = arguments(norm)
    with model.graph.inserting_before(norm):
        new = []
        for name in ("weight", "bias"):
            old = tensor_of(model, given[name])
            assert old is not None
            new.append(add_constant(model, f"_smoothed_{norm.name}_{name}", (old.double() / scale).to(old.dtype)))
    norm.args = (norm.args[0], norm.args[1], *new, *norm.args[4:])
