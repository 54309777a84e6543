"""A Llama-shaped decoder for `benchmarks/scale.py`: one token a call, its keys and values in a cache of its own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from benchmarks.scale import Shape

_EPSILON = 1e-5
_FORBIDDEN = -100.0  # added to the score of a position to come


class RMSNorm(nn.Module):
    """Divide by the root of the mean square, and scale each channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + _EPSILON) * self.weight


class Attention(nn.Module):
    """Attention of grouped queries over a cache, with rotated positions."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.size, self.kv_heads = shape.width // shape.heads, shape.kv_heads
        narrow = shape.kv_heads * self.size
        self.query, self.out = (nn.Linear(shape.width, shape.width, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(shape.width, narrow, bias=False) for _ in range(2))
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, shape.kv_heads, shape.context, self.size))

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, position: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        query, key, value = (
            one(x).view(1, -1, self.size).unsqueeze(2).reshape(1, self.kv_heads, -1, self.size)
            for one in (self.query, self.key, self.value)
        )
        self.keys.index_copy_(2, position, _rotate(key, cos, sin))
        self.values.index_copy_(2, position, value)
        scores = _rotate(query, cos, sin) @ self.keys.transpose(-1, -2) / math.sqrt(self.size) + mask
        return self.out((torch.softmax(scores, -1) @ self.values).reshape(1, 1, -1))


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Block(nn.Module):
    """Attention and a gated product, each normalized before and added to its input."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention, self.attention_norm = Attention(shape), RMSNorm(shape.width)
        self.norm = RMSNorm(shape.width)
        self.gate, self.up = (nn.Linear(shape.width, shape.hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, x: torch.Tensor, *rows: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x), *rows)
        h = self.norm(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    """Logits of the next token from a token and its position."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = RMSNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        half = shape.width // shape.heads // 2
        for name, size in (("cos", half), ("sin", half), ("mask", shape.context)):
            self.register_buffer(name, torch.zeros(shape.context, size))

    def set_tables(self) -> None:
        """Fill what no training finds: rotations, the mask, empty caches."""
        half = self.cos.shape[1]
        angles = torch.arange(self.shape.context)[:, None] * 10_000 ** (-torch.arange(half) / half)
        self.cos, self.sin = angles.cos(), angles.sin()
        self.mask = torch.full((self.shape.context, self.shape.context), _FORBIDDEN).triu(1)
        for block in self.blocks:
            attention = block.attention
            attention.keys, attention.values = torch.zeros_like(attention.keys), torch.zeros_like(attention.values)

    def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        x = self.embedding(token)
        rows = self.cos[position], self.sin[position], position, self.mask[position]
        for block in self.blocks:
            x = block(x, *rows)
        return self.head(self.norm(x))
