"""Linear layers: Edge has them as addmm or mm over a permuted constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.fx import value_of
from openneutron.executorch.lower.ops._activation import fuse_activation
from openneutron.executorch.lower.ops._weights import constant_bias, constant_weights, weights_and_bias
from openneutron.executorch.lower.values import Value, plain
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.linear.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Quantize input, weights per output feature (dimension 0) and output; the bias is quantized at lowering."""
    a.compute(node, [node.args[0]], {node.args[1]: a.weight_spec(node.args[1], 0)})


@annotates("aten.addmm.default", wide=True)
def annotate_addmm(node: Node, a: Annotator) -> None:
    """Quantize a linear layer whose weights have output features along dimension 1."""
    a.compute(node, [node.args[1]], {node.args[2]: a.weight_spec(node.args[2], 1)})


@annotates("aten.mm.default", wide=True)
def annotate_mm(node: Node, a: Annotator) -> None:
    """Quantize a linear layer whose weights have output features along dimension 1."""
    a.compute(node, [node.args[0]], {node.args[1]: a.weight_spec(node.args[1], 1)})


@annotates("aten.matmul.default", wide=True)
def annotate_matmul(node: Node, a: Annotator) -> None:
    """Quantize as a linear layer if the right side is a constant matrix, else as a product of two activations."""
    left, right = node.args[:2]
    if right.op == "get_attr" and value_of(right) is not None and value_of(right).dim() == 2:
        a.compute(node, [left], {right: a.weight_spec(right, 1)})
    else:
        a.compute(node, [left, right])


@limit("alpha and beta must be 1")
def unscaled(call: Call) -> Verdict:
    """FULLY_CONNECTED has no factors."""
    scales = call["alpha"], call["beta"]
    return (
        OK if scales == (1, 1) else no(f"alpha is {scales[0]}, beta is {scales[1]}", hint="scale the weights instead")
    )


@lowers("aten.addmm.default", limits=(unscaled, constant_weights, constant_bias), layout="plain", cpu="matmul")
def lower_addmm(call: Call) -> Value:
    """Lower to FULLY_CONNECTED with bias."""
    return _fully_connected(call, call.quantized_argument("mat1"), call.value("mat2"), call.value("self"))


@lowers("aten.mm.default", limits=(constant_weights,), layout="plain", cpu="matmul")
def lower_mm(call: Call) -> Value:
    """Lower to FULLY_CONNECTED without bias."""
    return _fully_connected(call, call.quantized_argument("self"), call.value("mat2"), None)


def _has_more_than_two_dimensions(node: Node) -> bool:
    """Decomposed, such a layer may become a batched product whose inside is not quantized."""
    return value_of(node) is not None and value_of(node).dim() > 2


@lowers(
    "aten.linear.default", limits=(constant_weights, constant_bias), layout="plain",
    preserve=_has_more_than_two_dimensions,
    cpu="matmul",
)  # fmt: skip
def lower_linear(call: Call) -> Value:
    """Lower to FULLY_CONNECTED that keeps the leading dimensions."""
    weight = call.value("weight")
    return _fully_connected(call, call.quantized_argument("input"), weight.permute((1, 0)), call.optional("bias"))


def _fully_connected(call: Call, x: Value, weight: Value, bias: Value | None) -> Value:
    """Emit FULLY_CONNECTED; `weight` is [inputs, outputs], as in addmm."""
    quantization = call.output_quantization()
    weight_tensor, bias_tensor = weights_and_bias(call, x, weight, (1, 0), 1, bias)
    source = call.tensor(x, plain(x.rank))
    activation = fuse_activation(call)
    value, made = call.result(plain(x.rank), quantization, dtype=x.storage.dtype)
    call.emit(
        "FULLY_CONNECTED", [source, weight_tensor, bias_tensor], [made], fused_activation_function=activation,
        keep_num_dims=x.rank != 2,
    )  # fmt: skip
    return value
