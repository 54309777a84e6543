"""RoundWeights: chooses for each weight to round up or down so that the layer's result has the smallest error.

Like AdaRound (Nagel et al. 2020) it minimises e H e' for each output channel, where e is the error of its weights in steps
and H the second moments of the layer's inputs. AdaRound relaxes the choice and trains it for thousands of steps. This
implementation is a greedy search: it flips the weight with the largest gain until no flip helps. The result is never worse
than rounding to nearest, needs no tuning and is reproducible to the bit. It can stop at a local minimum, which AdaRound's
noise sometimes leaves.

Before, `fit_scales` makes the scale of each channel smaller or larger where that leaves less of the same error: a layer with
few weights, such as a first or a depth-wise convolution, gains most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch.nn import functional

from openneutron.executorch.fx import arguments, operator_name
from openneutron.executorch.quantize.passes._layers import LINEAR, Layer

LARGEST: Final = 8192  # inputs of an output: their moments take 512 MB
POSITIONS: Final = 256  # positions of one sample at which a convolution is measured, evenly spaced
DAMPING: Final = 0.01  # fraction of the mean moment added to all, against overfitting the samples
_LOW, _HIGH = -127, 127
_FACTORS: Final = tuple(1.0 - at / 64 for at in (*range(17), -1, -2, -3, -4))  # of a scale; nearest first
_FLIPPED: Final = 64  # inputs up to which each scale is judged with its weights rounded for the layer


def inputs_of_a_group(layer: Layer, weight: torch.Tensor) -> int:
    """Return how many inputs an output has."""
    blocks = layer.blocks(weight)
    return int(blocks.shape[2] * blocks.shape[3])


def gram(layer: Layer, weight: torch.Tensor, read: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the second moments of a layer's inputs as [groups, inputs, inputs].

    Not around their mean, even where biases are corrected later: other samples have other means.
    """
    inputs = inputs_of_a_group(layer, weight)
    total = torch.zeros(layer.groups, inputs, inputs)
    count = 0
    for x in read:
        columns = _columns(layer, weight, x.float()).reshape(layer.groups, inputs, -1)
        total += columns @ columns.transpose(1, 2)
        count += columns.shape[2]
    total /= count
    level = total.diagonal(dim1=1, dim2=2).mean(1)
    return total + DAMPING * torch.where(level > 0, level, 1.0)[:, None, None] * torch.eye(inputs)


def fit_scales(
    layer: Layer, weight: torch.Tensor, scales: torch.Tensor, moments: torch.Tensor, *, together: bool
) -> torch.Tensor:
    """Return the scale of each output channel that leaves the smallest error of the result; `together`, one for all."""
    flat = layer.blocks(weight.double()).reshape(layer.groups, -1, moments.shape[1])
    own = scales.double().reshape(flat.shape[0], flat.shape[1], 1)
    h = moments.double()
    best, least = torch.ones_like(own), torch.full_like(own, math.inf)
    for factor in _FACTORS:
        exact = flat / (own * factor)
        steps = _round_rows(exact, h) if flat.shape[2] <= _FLIPPED else exact.round().clamp(_LOW, _HIGH)
        error = (steps - exact) * (own * factor)
        cost = ((error @ h) * error).sum(2, keepdim=True)
        if together:
            cost = cost.sum().expand_as(cost)
        best = torch.where(cost < least, factor, best)
        least = torch.minimum(cost, least)
    return (own * best).reshape(scales.shape)


def round_weights(layer: Layer, weight: torch.Tensor, scales: torch.Tensor, moments: torch.Tensor) -> torch.Tensor:
    """Return the weights in steps of INT8, each rounded down or up."""
    shape = (-1, *[1] * (weight.dim() - 1))
    exact = layer.blocks(weight.double() / scales.reshape(shape))
    steps = _round_rows(exact.reshape(layer.groups, -1, moments.shape[1]), moments.double())
    return layer.from_blocks(steps.reshape(exact.shape), weight).to(torch.int8)


def _round_rows(flat: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """Return weights [groups, channels, inputs] in steps as integers that change the result little."""
    steps = flat.round().clamp(_LOW, _HIGH)
    low, high = flat.floor().clamp(_LOW, _HIGH), flat.ceil().clamp(_LOW, _HIGH)
    diagonal = h.diagonal(dim1=1, dim2=2)[:, None, :]
    gradient = (steps - flat) @ h
    least = 1e-9 * float(diagonal.max())
    # Each flip is the best of its row. A row has at most two flips per weight, as one may be flipped back.
    for _ in range(2 * flat.shape[2]):
        change = low + high - 2 * steps  # the other integer; 0 for integers and at the end of the range
        change = torch.where(low == high, 0.0, change.clamp(-1, 1))
        gain = torch.where(change != 0, 2 * change * gradient + diagonal, 0.0)
        best, at = gain.min(2, keepdim=True)
        if not bool((best < -least).any()):
            break
        step = torch.where(best < -least, change.gather(2, at), 0.0)
        steps.scatter_add_(2, at, step)
        rows = h.gather(1, at.expand(-1, -1, h.shape[2]))
        gradient += step * rows
    return steps


def _columns(layer: Layer, weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the input vectors that each output is a product with, as [inputs of all groups, positions]."""
    if operator_name(layer.node) == LINEAR:
        return _some(x.reshape(-1, x.shape[-1]).T)
    given = arguments(layer.node)
    image, kernel = x, weight.shape[2:]
    sizes: list[Any] = [given["stride"], given["padding"], given["dilation"]]
    stride, padding, dilation = (list(one) for one in sizes)
    if len(kernel) == 1:
        image, kernel = x.unsqueeze(2), torch.Size((1, *kernel))
        stride, padding, dilation = [1, *stride[:1]], [0, *padding[:1]], [1, *dilation[:1]]
    else:
        stride, padding, dilation = (one * 2 if len(one) == 1 else one for one in (stride, padding, dilation))
    found = functional.unfold(image, tuple(kernel), dilation=dilation, padding=padding, stride=stride)
    return _some(found.transpose(0, 1).reshape(found.shape[1], -1))


def _some(columns: torch.Tensor) -> torch.Tensor:
    return columns[:, :: max(1, columns.shape[1] // POSITIONS)]
