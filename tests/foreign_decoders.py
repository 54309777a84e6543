"""Small decoders as different people write them: caches, masks, rotations and attention of every usual kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

TOKENS, WIDTH, HEADS, CONTEXT = 32, 16, 2, 8
_HEAD = WIDTH // HEADS


@dataclass(frozen=True)
class Way:
    """How a decoder is written: its rotation, mask, cache and attention, by name."""

    rotation: str = "none"
    mask: str = "table"
    cache: str = "slice"
    attention: str = "written out"
    key_heads: int = HEADS


WAYS = {
    "learned positions, masked_fill": Way(mask="fill"),
    "index_put at every place": Way(cache="index_put"),
    "angles of a position, compared columns, SDPA": Way("angles", "compared", "index_copy", "sdpa", 1),
    "cos and sin by a batch of positions, a window, grouped SDPA": Way("tables", "window", "index_copy", "grouped", 1),
    "complex numbers, endless mask": Way("complex", "endless", "slice", "float"),
    "a mask by multiplication": Way("tables", "product", "index_copy"),
    "distances (ALiBi) with minus infinity": Way(mask="distances", cache="index_copy"),
}


class Decoder(nn.Module):
    """One block of attention and a gated layer."""

    def __init__(self, way: Way) -> None:
        super().__init__()
        self.way = way
        self.tokens, self.places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.norm, self.last = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        narrow = way.key_heads * _HEAD
        self.query, self.key, self.value = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, narrow), nn.Linear(WIDTH, narrow)
        self.result, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, TOKENS, bias=False)
        empty = torch.zeros(1, way.key_heads, CONTEXT, _HEAD)
        self.register_buffer("keys", empty)
        self.register_buffer("values", empty.clone())
        self.register_buffer("rates", 10.0 ** -torch.arange(_HEAD // 2))
        angles = torch.outer(torch.arange(CONTEXT).float(), self.rates)
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1))
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, -1))
        self.turns = torch.polar(torch.ones_like(angles), angles)
        seen = torch.ones(CONTEXT, CONTEXT).tril()
        self.register_buffer("seen", seen)
        self.register_buffer("endless", torch.zeros(CONTEXT, CONTEXT).masked_fill(seen == 0, -torch.inf))
        gone = torch.arange(CONTEXT)[:, None] - torch.arange(CONTEXT)
        slopes = torch.tensor([0.5, 0.25])[:, None, None]
        self.register_buffer("distances", (self.endless - slopes * gone.clamp_min(0)).transpose(0, 1).contiguous())

    def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        x = self.tokens(token)
        if self.way.rotation == "none":
            x = x + self.places(position)
        x = x + self.result(self._attend(self.norm(x), position))
        return self.head(self.last(x))

    def _attend(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        count = x.shape[1]
        query = self._turn(self.query(x).view(1, count, HEADS, _HEAD).transpose(1, 2), position)
        key = self._turn(self.key(x).view(1, count, -1, _HEAD).transpose(1, 2), position)
        value = self.value(x).view(1, count, -1, _HEAD).transpose(1, 2)
        self._write(key, value, position)
        mask, keys, values = self._mask(position), self.keys, self.values
        repeats = HEADS // self.way.key_heads
        if self.way.attention == "grouped":
            found = functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask, enable_gqa=True)
        elif self.way.attention == "sdpa":
            keys, values = (
                one[:, :, None].expand(1, -1, repeats, -1, -1).reshape(1, HEADS, CONTEXT, _HEAD)
                for one in (keys, values)
            )
            found = functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        else:
            keys, values = keys.repeat_interleave(repeats, 1), values.repeat_interleave(repeats, 1)
            scores = query @ keys.transpose(-1, -2) / math.sqrt(_HEAD)
            scores = scores.masked_fill(mask == 0, -torch.inf) if self.way.mask == "fill" else scores + mask
            if self.way.attention == "float":
                scores = scores.float()
            found = torch.softmax(scores, -1).type_as(query) @ values
        return found.transpose(1, 2).reshape(1, count, WIDTH)

    def _turn(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        if self.way.rotation == "none":
            return x
        if self.way.rotation == "complex":
            pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
            turned = pairs * self.turns[position].view(1, 1, -1, _HEAD // 2)
            return torch.view_as_real(turned).flatten(3).type_as(x)
        if self.way.rotation == "angles":
            angles = (self.rates[None, :, None] @ position[None, None, :].float()).transpose(1, 2)
            both = torch.cat([angles, angles], -1)
            cos, sin = both.cos(), both.sin()
        else:
            places = position.unsqueeze(0)
            cos, sin = self.cos[places], self.sin[places]
        first, second = x.chunk(2, -1)
        return x * cos.unsqueeze(1) + torch.cat([-second, first], -1) * sin.unsqueeze(1)

    def _write(self, key: torch.Tensor, value: torch.Tensor, position: torch.Tensor) -> None:
        for cache, rows in ((self.keys, key), (self.values, value)):
            if self.way.cache == "index_copy":
                cache.index_copy_(2, position, rows)
            elif self.way.cache == "slice":
                cache[:, :, position] = rows
            else:
                heads = torch.arange(cache.shape[1]).view(1, -1, 1)
                cache.index_put_((torch.zeros(1, 1, 1, dtype=torch.int64), heads, position.view(1, 1, -1)), rows)

    def _mask(self, position: torch.Tensor) -> torch.Tensor:
        columns = torch.arange(CONTEXT)
        allowed = columns[None, :] <= position[:, None]
        if self.way.mask == "window":
            return (allowed & (columns[None, :] > position[:, None] - 4))[None, None]
        if self.way.mask == "compared":
            return torch.where(allowed, 0.0, torch.finfo(torch.float32).min)[None, None]
        if self.way.mask == "product":
            whole = torch.full((1, CONTEXT), torch.finfo(torch.float32).min)
            return (whole * (columns > position.reshape(-1, 1)))[None, None]
        if self.way.mask == "distances":
            return self.distances[position].transpose(0, 1).unsqueeze(0)
        if self.way.mask == "endless":
            return self.endless[position]
        return self.seen[position] if self.way.mask == "fill" else -1e4 * (1 - self.seen[position])


class Shifting(nn.Module):
    """A window of the last tokens that is shifted by each: no position at all."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.norm = nn.Embedding(TOKENS, WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.both = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH)
        self.result, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, TOKENS)
        self.register_buffer("keys", torch.zeros(1, CONTEXT, WIDTH))
        self.register_buffer("values", torch.zeros(1, CONTEXT, WIDTH))
        self.register_buffer("distances", 0.5 * torch.arange(1.0 - CONTEXT, 1.0))

    def forward(self, token: torch.Tensor) -> torch.Tensor:
        x = self.tokens(token)
        key, value = self.both(self.norm(x)).chunk(2, -1)
        keys, values = torch.cat([self.keys[:, 1:], key], 1), torch.cat([self.values[:, 1:], value], 1)
        self.keys.copy_(keys)
        self.values.copy_(values)
        scores = self.query(x) @ keys.transpose(1, 2) / math.sqrt(WIDTH) + self.distances
        return self.head(x + self.result(torch.softmax(scores, -1) @ values))


class ByNumber(nn.Module):
    """Writes its cache at a position that it takes out of the tensor as a number."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(TOKENS, WIDTH), nn.Linear(WIDTH, TOKENS)
        self.register_buffer("cache", torch.zeros(1, CONTEXT, WIDTH))

    def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        place = position.item()
        torch._check(place >= 0)
        torch._check(place < CONTEXT)
        self.cache.narrow(1, place, 1).copy_(self.tokens(token))
        return self.head(self.cache.sum(1, keepdim=True))


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    """Return a module with seeded weights, large enough that attention looks at some tokens more than at others."""
    torch.manual_seed(4)
    model = make().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.25)
    return model


def calls(rows: int = 2, *, positions: bool = True) -> list[tuple[torch.Tensor, ...]]:
    """Return the calls of whole sequences, a token each."""
    tokens = torch.randint(0, TOKENS, (rows, CONTEXT), generator=torch.Generator().manual_seed(5)).tolist()
    found = [(torch.tensor([[token]]), torch.tensor([at])) for row in tokens for at, token in enumerate(row)]
    return found if positions else [one[:1] for one in found]
