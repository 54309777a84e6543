"""Weight order of the array: [Cout/M][taps][Cin/N][M out][N in]; the input zero point is folded into the bias."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def pack_dense(weights: npt.NDArray[np.int8], units: int, length: int) -> npt.NDArray[np.uint8]:
    """Pack [Cout, taps, Cin] to blocks of M output channels × N inputs, zero-padded; see `docs/format.md`."""
    cout, taps, cin = weights.shape
    groups, blocks = -(-cout // units), -(-cin // length)
    padded = weights
    if weights.shape != (groups * units, taps, blocks * length):
        padded = np.zeros((groups * units, taps, blocks * length), np.int8)
        padded[:cout, :, :cin] = weights
    runs = np.ascontiguousarray(padded).view(f"V{length}")  # the N inputs of a block move together
    ordered = runs.reshape(groups, units, taps, blocks).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(ordered).view(np.uint8).reshape(-1)


def unpack_dense(
    packed: npt.NDArray[np.uint8], shape: tuple[int, int, int], units: int, length: int
) -> npt.NDArray[np.int8]:
    """Undo `pack_dense` for weights of `shape` [Cout, taps, Cin]."""
    cout, taps, cin = shape
    groups, blocks = -(-cout // units), -(-cin // length)
    ordered = packed.view(np.int8).reshape(groups, taps, blocks, units, length).transpose(0, 3, 1, 2, 4)
    return ordered.reshape(groups * units, taps, blocks * length)[:cout, :, :cin]


def pack_grouped(weights: npt.NDArray[np.int8], groups: int, units: int, length: int) -> npt.NDArray[np.uint8]:
    """Pack [Cout, taps, Cin/groups] by one `pack_dense` per channel group, one after the other."""
    per_group = weights.shape[0] // groups
    parts = [pack_dense(weights[g * per_group : (g + 1) * per_group], units, length) for g in range(groups)]
    return np.concatenate(parts) if groups > 1 else parts[0]


def pack_depthwise(weights: npt.NDArray[np.int8], units: int) -> npt.NDArray[np.uint8]:
    """Pack [taps, C] to [C/M][taps][M], zero-padded."""
    taps, channels = weights.shape
    groups = -(-channels // units)
    padded = np.zeros((taps, groups * units), np.int8)
    padded[:, :channels] = weights
    ordered = padded.reshape(taps, groups, units).transpose(1, 0, 2)
    return np.ascontiguousarray(ordered).view(np.uint8).reshape(-1)


def fold_zero_point(
    bias: npt.NDArray[np.int64], weights: npt.NDArray[np.int8], zero_point: int, weights_zero: int = 0
) -> npt.NDArray[np.int64]:
    """Return the bias plus -z_in * Σ(w - z_w), wrapped to INT32 like the accumulator; `weights` has Cout first."""
    flat = weights.reshape(weights.shape[0], -1)
    # In half the time of INT64 sums; what wraps here wraps below anyway.
    sums = flat.sum(axis=1, dtype=np.int32).astype(np.int64) - weights_zero * flat.shape[1]
    folded = bias.astype(np.int64) - zero_point * sums
    wrapped: npt.NDArray[np.int64] = (folded + (1 << 31)) % (1 << 32) - (1 << 31)
    return wrapped
