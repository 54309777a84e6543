"""Constants and tensors that depend only on shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from openneutron.onnx.ops import converts
from openneutron.onnx.values import outside

if TYPE_CHECKING:
    from openneutron.onnx.call import Call


@converts("Constant")
def constant(call: Call) -> torch.Tensor:
    """Return the tensor stored in the node."""
    for name in ("value_float", "value_floats"):
        if call.attribute(name) is not None:
            return torch.tensor(call.attribute(name), dtype=torch.float32)
    for name in ("value_int", "value_ints"):
        if call.attribute(name) is not None:
            return torch.tensor(call.attribute(name), dtype=torch.int64)
    value = call.attribute("value")
    if not isinstance(value, torch.Tensor):
        raise call.refuse("it holds neither numbers nor a dense tensor", "export the model again")
    return value


@converts("ConstantOfShape", grows=True)
def constant_of_shape(call: Call) -> torch.Tensor:
    """Return a tensor filled with one value."""
    value = call.attribute("value")
    if value is None:
        return torch.zeros(call.numbers(0), dtype=torch.float32)
    with outside():
        number = value.item()
    if value.dtype in (torch.uint16, torch.uint32, torch.uint64):
        return torch.full(call.numbers(0), int(number), dtype=torch.int64).to(value.dtype)
    return torch.full(call.numbers(0), number, dtype=value.dtype)


@converts("Range", grows=True)
def arange(call: Call) -> torch.Tensor:
    """Return evenly spaced numbers."""
    start, limit, delta = (call.constant_input(index).reshape(-1)[0] for index in range(3))
    count = max(int(np.ceil((float(limit) - float(start)) / float(delta))), 0)
    if call.tensor(0).is_floating_point():
        return (torch.arange(count, dtype=torch.float64) * float(delta) + float(start)).to(call.tensor(0).dtype)
    return (torch.arange(count, dtype=torch.int64) * int(delta) + int(start)).to(call.tensor(0).dtype)


@converts("EyeLike", grows=True)
def eye_like(call: Call) -> torch.Tensor:
    """Return ones on a diagonal."""
    x, code = call.tensor(0), call.attribute("dtype")
    dtype = x.dtype if code is None else call.dtype(int(code))
    rows, columns = x.shape
    offset = int(call.attribute("k", 0))
    return (torch.arange(columns)[None, :] - torch.arange(rows)[:, None] == offset).to(dtype)


@converts("OneHot", grows=True)
def one_hot(call: Call) -> torch.Tensor:
    """Return one of two values, by comparing with an index."""
    indices, depth = call.tensor(0), call.numbers(1)[0]
    axis = int(call.attribute("axis", -1))
    indices = indices.to(torch.int64).unsqueeze(axis)
    indices = torch.where(indices < 0, indices + depth, indices)
    shape = [1] * indices.dim()
    shape[axis] = depth
    hot = torch.arange(depth).reshape(shape) == indices
    values = call.tensor(2)
    return torch.where(hot, values[1], values[0])


@converts("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli")
def random(call: Call) -> torch.Tensor:
    """Refuse: nothing on the chip draws random numbers."""
    raise call.refuse("it draws random numbers", "export the model in evaluation mode")
