"""Look for convolutions with a batch norm only among the kinds of convolution that a network has.

Replaces: the two helpers of torchao's training in which a convolution and the batch norm behind it become one. Each exports
up to two dozen patterns for one kind of convolution. torchao calls them for all four kinds, also in a network that has linear
layers alone; where the kind is absent no pattern can match, and what else a helper does to the graph is done here.
Saves: three quarters of the patterns and more, which are most of a short training: each is an export of its own.
Knows: torchao 0.18.
Otherwise: torchao's own way.

Example:
    >>> with skip_absent_convs():
    ...     convert_pt2e(prepare_qat_pt2e(exported, quantizer))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any
from unittest.mock import patch

from torch.fx import GraphModule

from openneutron.executorch.upstream.switch import Expected, replaces

_TRAINING = "torchao.quantization.pt2e.qat_utils"
_GIVEN = ("m", "conv_fn", "example_inputs", "is_cuda")


@replaces(
    "torchao",
    Expected(_TRAINING, "_fuse_conv_bn_qat_helper", _GIVEN),
    Expected(_TRAINING, "_fold_conv_bn_qat_helper", _GIVEN),
    Expected(_TRAINING, "_duplicate_dequantize_node", ("m",)),
    Expected(_TRAINING, "_remove_extra_dequantize", ("m",)),
)
def skip_absent_convs() -> Iterator[None]:
    """Replace the two helpers."""
    module = import_module(_TRAINING)
    around_fold = (module._duplicate_dequantize_node, module._remove_extra_dequantize)
    with (
        patch.object(module, "_fuse_conv_bn_qat_helper", _where_present(module._fuse_conv_bn_qat_helper, ())),
        patch.object(module, "_fold_conv_bn_qat_helper", _where_present(module._fold_conv_bn_qat_helper, around_fold)),
    ):
        yield


def _where_present(
    helper: Callable[..., GraphModule], otherwise: tuple[Callable[[GraphModule], Any], ...]
) -> Callable[..., GraphModule]:
    def look(
        m: GraphModule, conv_fn: Callable[..., Any], example_inputs: tuple[Any, ...], is_cuda: bool
    ) -> GraphModule:
        if _has(m, conv_fn.__name__):
            return helper(m, conv_fn, example_inputs, is_cuda)
        m.graph.eliminate_dead_code()
        for change in otherwise:
            change(m)
        m.delete_all_unused_submodules()  # as a replacement of patterns does, also where none is found
        m.graph.eliminate_dead_code()
        m.recompile()
        return m

    return look


def _has(module: GraphModule, kind: str) -> bool:
    """Return whether some node is an operator of this name, in whichever overload."""
    found = (getattr(node.target, "overloadpacket", None) for node in module.graph.nodes)
    return any(packet is not None and packet.__name__ == kind for packet in found)
