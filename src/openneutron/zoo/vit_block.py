"""One encoder block of ViT-Tiny (Dosovitskiy et al., 2020; Touvron et al., 2020) over 64 tokens, untrained."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._model import ZooModel
from openneutron.zoo._untrained import make_untrained

TOKENS = 64  # 8x8 patches
WIDTH, HEADS, HIDDEN = 192, 3, 768  # ViT-Tiny's


class Attention(nn.Module):
    """Self-attention with one linear layer for queries, keys and values, and an output projection."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        split = self.inputs(x).reshape(batch, tokens, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = split.unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        result: torch.Tensor = self.output(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))
        return result


class VitBlock(nn.Module):
    """Layer norm and attention, layer norm and a perceptron with GELU, each added to its input.

    >>> VitBlock().eval()(torch.zeros(1, 64, 192)).shape
    torch.Size([1, 64, 192])
    """

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.perceptron = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, WIDTH))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        tokens = tokens + self.attention(self.first(tokens))
        result: torch.Tensor = tokens + self.perceptron(self.second(tokens))
        return result


def load() -> ZooModel:
    """Return the block with seeded weights."""
    return make_untrained("vit_block", VitBlock(), (1, TOKENS, WIDTH), "ViT-Tiny encoder block, 64 tokens")
