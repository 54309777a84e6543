"""Accuracy of a compiled program on labelled images, in ExecuTorch's runtime itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from openneutron.executorch.fx import arguments, is_quantize
from openneutron.zoo import LabelledImages


def input_encoding(quantized: Any) -> tuple[float, int] | None:
    """Scale and zero point with which the quantized module stores its first input."""
    first = next(node for node in quantized.graph.nodes if node.op == "placeholder")
    for user in first.users:
        if is_quantize(user):
            found = arguments(user)
            return float(found["scale"]), int(found["zero_point"])
    return None


def accuracy(
    run: Callable[..., tuple[Any, ...]], images: LabelledImages, encoding: tuple[float, int] | None, channels_last: bool
) -> float:
    """The share of test images that the program itself, in ExecuTorch's runtime, puts into their class."""
    inputs = images.inputs
    if encoding is not None:
        scale, zero_point = encoding
        inputs = torch.clamp(torch.round(inputs / scale) + zero_point, -128, 127).to(torch.int8)
    right = 0
    for image, label in zip(inputs.split(1), images.labels, strict=True):
        given = image.to(memory_format=torch.channels_last) if channels_last else image
        (scores,) = run(given)
        right += int(scores.argmax()) == int(label)
    return right / len(images)
