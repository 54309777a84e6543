"""Networks that make and read speech, with random weights: a vocoder, an encoder and a decoder with cross attention, a flow.

They have the operators and the structure of HiFi-GAN, Whisper and VITS in small sizes; a size is an argument.

Example:
    >>> network = NETWORKS["vocoder"]()
    >>> network.module(*network.inputs)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

MEL_BANDS = 80
_SLOPE = 0.1  # of leaky ReLU, as in HiFi-GAN


@dataclass(frozen=True)
class Network:
    """A network, inputs and calibration data."""

    module: nn.Module
    inputs: tuple[torch.Tensor, ...]
    calibration: Sequence[tuple[torch.Tensor, ...]]


class ResidualDilations(nn.Module):
    """Convolutions of growing dilation, each added to its input."""

    def __init__(self, channels: int, kernel: int, dilations: Sequence[int] = (1, 3, 5)) -> None:
        super().__init__()
        self.wide = nn.ModuleList(
            nn.Conv1d(channels, channels, kernel, dilation=one, padding=(kernel - 1) // 2 * one) for one in dilations
        )
        self.plain = nn.ModuleList(nn.Conv1d(channels, channels, kernel, padding=kernel // 2) for _ in dilations)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for wide, plain in zip(self.wide, self.plain, strict=True):
            x = x + plain(functional.leaky_relu(wide(functional.leaky_relu(x, _SLOPE)), _SLOPE))
        return x


class Vocoder(nn.Module):
    """HiFi-GAN's generator: transposed convolutions, after each of them residual blocks of several kernels, summed."""

    def __init__(self, channels: int, rates: Sequence[int] = (4, 4), kernels: Sequence[int] = (3, 7)) -> None:
        super().__init__()
        self.first = nn.Conv1d(MEL_BANDS, channels, 7, padding=3)
        self.rise = nn.ModuleList()
        self.blocks = nn.ModuleList()
        for rate in rates:
            self.rise.append(nn.ConvTranspose1d(channels, channels // 2, 2 * rate, stride=rate, padding=rate // 2))
            channels //= 2
            self.blocks.append(nn.ModuleList(ResidualDilations(channels, kernel) for kernel in kernels))
        self.last = nn.Conv1d(channels, 1, 7, padding=3)

    def forward(self, mel: torch.Tensor) -> torch.Tensor:
        x = self.first(mel)
        for rise, blocks in zip(self.rise, self.blocks, strict=True):
            x = rise(functional.leaky_relu(x, _SLOPE))
            x = sum(block(x) for block in blocks) / len(blocks)
        return torch.tanh(self.last(functional.leaky_relu(x)))


class Attention(nn.Module):
    """Attention of several heads; `context` gives keys and values where it is not the input itself."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.value, self.out = (nn.Linear(width, width) for _ in range(3))
        self.key = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor, context: torch.Tensor | None = None, mask: Any = None) -> torch.Tensor:
        source = x if context is None else context
        q, k, v = (self._split(one) for one in (self.query(x), self.key(source), self.value(source)))
        made = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(made.transpose(1, 2).flatten(2))

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)


class Block(nn.Module):
    """Normalized attention, cross attention where there is a context, and two linear layers, each added to its input."""

    def __init__(self, width: int, heads: int, *, cross: bool = False) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm = nn.LayerNorm(width)
        self.cross = Attention(width, heads) if cross else None
        self.cross_norm = nn.LayerNorm(width) if cross else None
        self.layers = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.layers_norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor, context: torch.Tensor | None = None, mask: Any = None) -> torch.Tensor:
        x = x + self.attention(self.norm(x), mask=mask)
        if self.cross is not None and self.cross_norm is not None:
            x = x + self.cross(self.cross_norm(x), context)
        return x + self.layers(self.layers_norm(x))


class SpeechEncoder(nn.Module):
    """Whisper's encoder: two convolutions over time, positions, blocks."""

    def __init__(self, width: int, heads: int, layers: int, frames: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(MEL_BANDS, width, 3, padding=1)
        self.second = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.register_buffer("positions", _sinusoids(frames // 2, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, mel: torch.Tensor) -> torch.Tensor:
        x = functional.gelu(self.second(functional.gelu(self.first(mel)))).transpose(1, 2) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class TextDecoder(nn.Module):
    """Whisper's decoder: tokens attend to those before them and to the encoder's result; logits share the embedding."""

    def __init__(self, width: int, heads: int, layers: int, vocabulary: int, tokens: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(tokens, width) / 4)
        self.blocks = nn.ModuleList(Block(width, heads, cross=True) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.register_buffer("mask", torch.full((tokens, tokens), -100.0).triu(1))

    def forward(self, tokens: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens) + self.positions
        for block in self.blocks:
            x = block(x, context, self.mask)
        return self.norm(x) @ self.embedding.weight.t()


class Coupling(nn.Module):
    """One inverse step of VITS' flow: half of the channels shift and scale the others, through gated dilated convolutions."""

    def __init__(self, channels: int, hidden: int, layers: int = 3, kernel: int = 5) -> None:
        super().__init__()
        self.first = nn.Conv1d(channels // 2, hidden, 1)
        self.gates = nn.ModuleList(
            nn.Conv1d(hidden, 2 * hidden, kernel, dilation=2**at, padding=(kernel - 1) // 2 * 2**at)
            for at in range(layers)
        )
        self.skips = nn.ModuleList(nn.Conv1d(hidden, 2 * hidden, 1) for _ in range(layers))
        self.last = nn.Conv1d(hidden, channels, 1)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        kept, changed = z.chunk(2, 1)
        x, total = self.first(kept), 0
        for gate, skip in zip(self.gates, self.skips, strict=True):
            a, b = gate(x).chunk(2, 1)
            rest, out = skip(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            x, total = x + rest, total + out
        mean, log_scale = self.last(total).chunk(2, 1)
        return torch.cat([kept, (changed - mean) * torch.exp(-log_scale)], 1)


class Flow(nn.Module):
    """VITS' flow from prior to latent: coupling steps with the channels reversed between them."""

    def __init__(self, channels: int, hidden: int, steps: int = 4) -> None:
        super().__init__()
        self.steps = nn.ModuleList(Coupling(channels, hidden) for _ in range(steps))

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        for step in self.steps:
            z = step(z.flip(1))
        return z


def _sinusoids(length: int, width: int) -> torch.Tensor:
    rates = torch.exp(-math.log(10_000) / (width // 2 - 1) * torch.arange(width // 2))
    angles = torch.arange(length)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], 1)


def _network(module: nn.Module, make: Callable[[torch.Generator], tuple[torch.Tensor, ...]], samples: int) -> Network:
    generator = torch.Generator().manual_seed(1)
    data = [make(generator) for _ in range(samples)]
    return Network(module.eval(), data[0], data)


def vocoder(channels: int = 64, frames: int = 16, samples: int = 8) -> Network:
    """A vocoder and mel spectrograms."""
    torch.manual_seed(0)
    return _network(Vocoder(channels), lambda g: (torch.randn(1, MEL_BANDS, frames, generator=g),), samples)


def speech_encoder(width: int = 64, layers: int = 2, frames: int = 64, samples: int = 8) -> Network:
    """An encoder of mel spectrograms."""
    torch.manual_seed(0)
    made = SpeechEncoder(width, width // 16, layers, frames)
    return _network(made, lambda g: (torch.randn(1, MEL_BANDS, frames, generator=g),), samples)


def text_decoder(
    width: int = 64, layers: int = 2, vocabulary: int = 512, tokens: int = 8, frames: int = 32, samples: int = 8
) -> Network:
    """A decoder of tokens with the encoder's result."""
    torch.manual_seed(0)
    made = TextDecoder(width, width // 16, layers, vocabulary, tokens)
    return _network(
        made,
        lambda g: (torch.randint(vocabulary, (1, tokens), generator=g), torch.randn(1, frames, width, generator=g)),
        samples,
    )


def flow(channels: int = 32, hidden: int = 32, frames: int = 32, samples: int = 8) -> Network:
    """A flow and samples of its prior."""
    torch.manual_seed(0)
    return _network(Flow(channels, hidden), lambda g: (torch.randn(1, channels, frames, generator=g),), samples)


NETWORKS: dict[str, Callable[[], Network]] = {
    "vocoder": vocoder, "speech encoder": speech_encoder, "text decoder": text_decoder, "flow": flow,
}  # fmt: skip
