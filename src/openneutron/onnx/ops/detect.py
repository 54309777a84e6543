"""Operators of object detectors: non-maximum suppression and regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from openneutron.onnx.ops import converts

if TYPE_CHECKING:
    from openneutron.onnx.call import Call

Array = npt.NDArray[np.float64]


def _corners(boxes: Array, centered: bool) -> Array:
    if centered:
        middle, half = boxes[:, :2], boxes[:, 2:] / 2
        return np.concatenate([middle - half, middle + half], 1)
    return np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], 1)


def _overlap(one: Array, others: Array) -> Array:
    low, high = np.maximum(one[:2], others[:, :2]), np.minimum(one[2:], others[:, 2:])
    shared = np.prod(np.maximum(high - low, 0), 1)
    areas = np.prod(others[:, 2:] - others[:, :2], 1)
    whole = np.prod(one[2:] - one[:2]) + areas - shared
    return np.where(whole > 0, shared / np.where(whole > 0, whole, 1), 0.0)


@converts("NonMaxSuppression")
def non_max_suppression(call: Call) -> torch.Tensor:
    """Keep the best of overlapping boxes. The number depends on the data, which must be known during import."""
    if not call.is_known(0) or not call.is_known(1):
        raise call.refuse(
            "how many boxes it keeps depends on the data, and no runtime on the chip has a kernel for it",
            "cut the model before it, and select boxes in the application",
        )
    boxes, scores = np.asarray(call.constant_input(0), np.float64), np.asarray(call.constant_input(1), np.float64)
    most = call.numbers(2)[0] if call.has(2) else 0
    limit = float(call.constant_input(3).reshape(-1)[0]) if call.has(3) else 0.0
    least = float(call.constant_input(4).reshape(-1)[0]) if call.has(4) else -np.inf
    picked = []
    for batch in range(boxes.shape[0]):
        corners = _corners(boxes[batch], bool(call.attribute("center_point_box", 0)))
        for label in range(scores.shape[1]):
            kept: list[int] = []
            for at in np.argsort(-scores[batch, label], kind="stable"):
                if len(kept) >= most or scores[batch, label, at] <= least:
                    break
                if not kept or (_overlap(corners[at], corners[kept]) <= limit).all():
                    kept.append(int(at))
            picked += [(batch, label, at) for at in kept]
    return torch.tensor(np.array(picked, np.int64).reshape(-1, 3))
