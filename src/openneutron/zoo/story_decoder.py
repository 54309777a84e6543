"""Story decoder: a Llama-shaped language model of 293,000 parameters that writes stories of a small grammar.

Its cache of keys and values is in buffers that `forward` updates in place, so that one call takes one token or several in a row
and the next call goes on behind them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from openneutron.language.vocabulary import BOS, EOS, Vocabulary
from openneutron.zoo._model import ZooModel
from openneutron.zoo._store import load_weights, packaged_path, read_arrays


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder; several heads of queries share one of keys and values."""

    vocabulary: int = 512
    width: int = 64
    layers: int = 5
    heads: int = 8
    shared_heads: int = 4
    inner: int = 172
    context: int = 256
    theta: float = 10_000.0  # the slowest rotation of positions takes about 2π times as many of them

    @property
    def head_width(self) -> int:
        """The width of one head."""
        return self.width // self.heads


class RootMeanSquareNorm(nn.Module):
    """Divides each row by its root mean square, and multiplies it by a gain for each channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Attention(nn.Module):
    """Grouped-query attention with rotary positions over a cache of all positions up to the last one given."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        narrow = shape.shared_heads * shape.head_width
        self.query = nn.Linear(shape.width, shape.width, bias=False)
        self.key = nn.Linear(shape.width, narrow, bias=False)
        self.value = nn.Linear(shape.width, narrow, bias=False)
        self.result = nn.Linear(shape.width, shape.width, bias=False)
        empty = torch.zeros(1, shape.shared_heads, shape.context, shape.head_width)
        self.register_buffer("keys", empty, persistent=False)
        self.register_buffer("values", empty.clone(), persistent=False)

    def forward(
        self,
        x: torch.Tensor,
        turn: tuple[torch.Tensor, torch.Tensor],
        mask: torch.Tensor,
        positions: torch.Tensor | None,
    ) -> torch.Tensor:
        shape, (batch, count, _) = self.shape, x.shape
        query = _rotate(self.query(x).view(batch, count, shape.heads, shape.head_width).transpose(1, 2), turn)
        key = _rotate(self.key(x).view(batch, count, shape.shared_heads, shape.head_width).transpose(1, 2), turn)
        value = self.value(x).view(batch, count, shape.shared_heads, shape.head_width).transpose(1, 2)
        if positions is not None:
            key = self.keys.index_copy_(2, positions, key)
            value = self.values.index_copy_(2, positions, value)
        repeats = shape.heads // shape.shared_heads
        key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
        if positions is None:
            found = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query @ key.transpose(2, 3) / math.sqrt(shape.head_width) + mask
            found = torch.softmax(scores, -1) @ value
        result: torch.Tensor = self.result(found.transpose(1, 2).reshape(batch, count, shape.width))
        return result


class Block(nn.Module):
    """Attention and a gated layer, each behind a norm and added to the stream."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention_norm, self.attention = RootMeanSquareNorm(shape.width), Attention(shape)
        self.inner_norm = RootMeanSquareNorm(shape.width)
        self.gate = nn.Linear(shape.width, shape.inner, bias=False)
        self.up = nn.Linear(shape.width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(
        self,
        x: torch.Tensor,
        turn: tuple[torch.Tensor, torch.Tensor],
        mask: torch.Tensor,
        positions: torch.Tensor | None,
    ) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x), turn, mask, positions)
        inner = self.inner_norm(x)
        result: torch.Tensor = x + self.down(functional.silu(self.gate(inner)) * self.up(inner))
        return result


class StoryDecoder(nn.Module):
    """Logits of the next token for each given one; tokens [1, n] stand at positions [n] of the context.

    >>> StoryDecoder().eval()(torch.tensor([[0]]), torch.tensor([0])).shape
    torch.Size([1, 1, 512])
    """

    def __init__(self, shape: Shape | None = None) -> None:
        super().__init__()
        self.shape = shape = shape or Shape()
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = RootMeanSquareNorm(shape.width)
        self.logits = nn.Linear(shape.width, shape.vocabulary, bias=False)
        rates = shape.theta ** (-torch.arange(0, shape.head_width, 2) / shape.head_width)
        angles = torch.arange(shape.context)[:, None] * rates
        self.register_buffer("cosines", angles.cos(), persistent=False)
        self.register_buffer("sines", angles.sin(), persistent=False)
        self.register_buffer("mask", torch.full((shape.context,) * 2, -1e4).triu(1), persistent=False)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return self._run(tokens, (self.cosines[positions], self.sines[positions]), self.mask[positions], positions)

    def without_cache(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits of whole sequences [batch, n] from position 0 on, which training needs."""
        count = tokens.shape[1]
        return self._run(tokens, (self.cosines[:count], self.sines[:count]), self.mask[:count, :count], None)

    def _run(
        self,
        tokens: torch.Tensor,
        turn: tuple[torch.Tensor, torch.Tensor],
        mask: torch.Tensor,
        positions: torch.Tensor | None,
    ) -> torch.Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, turn, mask, positions)
        result: torch.Tensor = self.logits(self.norm(x))
        return result


def _rotate(x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    (cosines, sines), (first, second) = turn, x.chunk(2, -1)
    return torch.cat([first * cosines - second * sines, first * sines + second * cosines], -1)


def vocabulary() -> Vocabulary:
    """Return the decoder's vocabulary."""
    path = packaged_path("data", "story_vocabulary.json")
    return Vocabulary.from_json(path.read_bytes(), str(path))


def sequences(part: str) -> list[list[int]]:
    """Return the token sequences of "calibration" or "test", each from the begin of a story."""
    rows = read_arrays(packaged_path("data", "story_tokens.npz"))[part]
    return [[int(one) for one in row] for row in rows]


def steps(tokens: list[int]) -> list[tuple[torch.Tensor, ...]]:
    """Return the calls that give a sequence to the decoder, a token each.

    >>> steps([0, 7])[1]
    (tensor([[7]]), tensor([1]))
    """
    return [(torch.tensor([[token]]), torch.tensor([at])) for at, token in enumerate(tokens)]


def load() -> ZooModel:
    """Return the trained decoder (`training/train_story_decoder.py` makes its weights and vocabulary)."""
    model = StoryDecoder().eval()
    load_weights(model, packaged_path("weights", "story_decoder.npz"))
    return ZooModel(
        name="story_decoder",
        description="Llama-shaped decoder with its cache, 293,000 parameters, one token a call; trained on stories",
        model=model,
        example_inputs=steps([BOS])[0],
        calibration=[step for row in sequences("calibration") for step in steps(row)],
        trained=True,
        test_tokens=lambda: sequences("test"),
        constants={"get_bos_id": BOS, "get_eos_ids": [EOS]},
    )
