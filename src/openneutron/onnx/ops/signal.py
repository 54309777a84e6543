"""Fourier transforms, as products with constant matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from openneutron.errors import FormatError
from openneutron.onnx.ops import converts

if TYPE_CHECKING:
    from openneutron.onnx.call import Call


def _waves(
    call: Call, points: int, length: int, rows: int, sign: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cos and sin of every frequency: [frequencies, samples]; samples beyond the signal are zeros."""
    call.room_for(rows, min(points, length))
    angle = sign * 2 * np.pi * ((np.arange(rows)[:, None] * np.arange(min(points, length))[None, :]) % points) / points
    cos, sin = (call.constant(lambda wave=wave: torch.from_numpy(wave(angle)).to(dtype)) for wave in (np.cos, np.sin))
    return cos, sin


def transform(
    call: Call, x: torch.Tensor, points: int, *, inverse: bool = False, onesided: bool = False
) -> torch.Tensor:
    """Compute the Fourier transform over the samples of a tensor [..., samples, 1 or 2] (real, or real and imaginary)."""
    rows = points // 2 + 1 if onesided and not inverse else points
    cos, sin = _waves(call, points, x.shape[-2], rows, 1.0 if inverse else -1.0, x.dtype)
    x = x.narrow(-2, 0, min(points, x.shape[-2]))
    real, imaginary = x[..., 0], x[..., 1] if x.shape[-1] == 2 else None
    linear = torch.nn.functional.linear
    out_real, out_imaginary = linear(real, cos), linear(real, sin)
    if imaginary is not None:
        out_real, out_imaginary = out_real - linear(imaginary, sin), out_imaginary + linear(imaginary, cos)
    y = torch.stack([out_real, out_imaginary], -1)
    return y * (1.0 / points) if inverse else y


@converts("DFT")
def dft(call: Call) -> torch.Tensor:
    """Compute a Fourier transform along one axis."""
    x = call.tensor(0)
    if x.shape[-1] not in (1, 2):
        raise FormatError(f"its input has {x.shape[-1]} components, not 1 or 2", hint="export the model again")
    axis = int(call.attribute("axis", 1)) if call.version < 20 else (call.numbers(2)[0] if call.has(2) else -2)
    axis %= x.dim()
    points = call.numbers(1)[0] if call.has(1) else x.shape[axis]
    inverse, onesided = bool(call.attribute("inverse", 0)), bool(call.attribute("onesided", 0))
    if inverse and onesided:  # the other half is the mirrored conjugate
        points = call.numbers(1)[0] if call.has(1) else 2 * (x.shape[axis] - 1)
        x = x.transpose(axis, -2)
        kept = x.narrow(-2, 0, points // 2 + 1)
        mirror = torch.flip(kept.narrow(-2, 1, (points - 1) // 2), [-2]) * call.constant(np.array([1, -1])).to(x.dtype)
        y = transform(call, torch.cat([kept, mirror], -2), points, inverse=True)[..., :1]
    else:
        y = transform(call, x.transpose(axis, -2), points, inverse=inverse, onesided=onesided)
    return y.transpose(axis, -2)


@converts("STFT")
def stft(call: Call) -> torch.Tensor:
    """Compute Fourier transforms of overlapping frames."""
    x, step = call.tensor(0), call.numbers(1)[0]
    x = x if x.dim() == 3 else x.unsqueeze(-1)
    window = call.tensor(2) if call.has(2) else None
    length = call.numbers(3)[0] if call.has(3) else window.shape[0] if window is not None else x.shape[1]
    frames = x.transpose(1, 2).unfold(2, length, step).permute(0, 2, 3, 1)  # [batch, frames, samples, 1 or 2]
    if window is not None:
        frames = frames * window.reshape(1, 1, -1, 1)
    return transform(call, frames, length, onesided=bool(call.attribute("onesided", 1)))


@converts("MelWeightMatrix")
def mel_weight_matrix(call: Call) -> torch.Tensor:
    """Return triangular filters on the mel scale: [frequencies, mel bands]."""
    bands, points, rate = (call.numbers(index)[0] for index in range(3))
    call.room_for(points // 2 + 1, bands)
    low, high = (float(call.constant_input(index).reshape(-1)[0]) for index in (3, 4))
    edges = np.linspace(_mel(low), _mel(high), bands + 2)
    places = np.floor(((points + 1) * 700 * (10 ** (edges / 2595) - 1)) / rate).astype(int)
    made = np.zeros((points // 2 + 1, bands))
    for band in range(bands):
        first, middle, last = places[band : band + 3]
        rising = np.arange(first, middle)
        made[rising, band] = (rising - first) / max(middle - first, 1)
        if middle == first:
            made[middle, band] = 1
        falling = np.arange(middle, last)
        made[falling, band] = (last - falling) / max(last - middle, 1)
    return torch.from_numpy(made).to(call.dtype(int(call.attribute("output_datatype", 1))))


def _mel(frequency: float) -> float:
    return float(2595 * np.log10(1 + frequency / 700))
