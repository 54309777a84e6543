"""Matrix products: Gemm, MatMul and their integer forms, Einsum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from openneutron.onnx.ops import OWN, converts

if TYPE_CHECKING:
    from openneutron.onnx.call import Call


@converts("Gemm")
def gemm(call: Call) -> torch.Tensor:
    """Compute a linear layer; factors are folded into constants where possible."""
    alpha, beta = float(call.attribute("alpha", 1.0)), float(call.attribute("beta", 1.0))
    x = call.tensor(0)
    x = x.t() if call.attribute("transA", 0) else x
    # torch's linear takes weights as [outputs, inputs], which is how exporters store them with transB.
    weight = _weight(call, 1, bool(call.attribute("transB", 0)), alpha)
    if not x.is_floating_point():
        y = torch.matmul(x, weight.t())
        return y if not call.has(2) else y + call.tensor(2) * (int(beta) if beta.is_integer() else beta)
    if not call.has(2):
        return functional.linear(x, weight)
    bias = _scale(call, 2, beta)
    if bias.dim() == 1 and bias.shape[0] == weight.shape[0]:
        return functional.linear(x, weight, bias)
    if bias.dim() == 2 and bias.shape == (1, weight.shape[0]):
        return functional.linear(x, weight, bias.reshape(-1))
    return functional.linear(x, weight) + bias


def _weight(call: Call, index: int, transposed: bool, factor: float) -> torch.Tensor:
    data = call.value(index).data
    if data is None:
        weight = call.tensor(index)
        weight = weight if transposed else weight.t()
        return weight if factor == 1.0 else weight * factor
    if transposed and factor == 1.0:
        return call.tensor(index)
    return call.constant(lambda: (data if transposed else data.t()) * factor if factor != 1.0 else data.t())


def _scale(call: Call, index: int, factor: float) -> torch.Tensor:
    if factor == 1.0:
        return call.tensor(index)
    data = call.value(index).data
    return call.tensor(index) * factor if data is None else call.constant(lambda: data * factor)


def product(call: Call, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Compute a matrix product, as a linear layer if the right side is a constant matrix."""
    data = call.value(1).data
    if data is not None and data.dim() == 2 and left.dim() >= 2 and left.is_floating_point():
        return functional.linear(left, call.constant(lambda: data.t()))
    return torch.matmul(left, right)


@converts("MatMul")
def matmul(call: Call) -> torch.Tensor:
    """Multiply matrices, batches of them, or vectors."""
    return product(call, call.tensor(0), call.tensor(1))


@converts("Linear", domain=OWN)
def linear(call: Call) -> torch.Tensor:
    """Compute a linear layer that `fuse` made of a product and a bias."""
    data = call.value(1).data
    weight = call.tensor(1).t() if data is None else call.constant(lambda: data.t())
    return functional.linear(call.tensor(0), weight, call.tensor(2))


@converts("MatMulInteger")
def matmul_integer(call: Call) -> torch.Tensor:
    """Multiply integer matrices: exact in INT32."""
    left, right = call.tensor(0).to(torch.int32), call.tensor(1).to(torch.int32)
    if call.has(2):
        zero = call.tensor(2).to(torch.int32)
        left = left - (zero.unsqueeze(-1) if zero.dim() == 1 and zero.numel() > 1 else zero)
    if call.has(3):
        right = right - call.tensor(3).to(torch.int32)
    return torch.matmul(left, right)


@converts("Einsum")
def einsum(call: Call) -> torch.Tensor:
    """Sum products over named indices."""
    equation = call.text("equation", "").replace(" ", "")
    return torch.einsum(equation, *call.tensors())
