"""A temporal convolutional network over audio features (after Bai et al., 2018): 1-D, causal, dilated; untrained."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._model import ZooModel
from openneutron.zoo._untrained import make_untrained

BANDS, FRAMES = 40, 96  # mel bands by 10 ms frames: just under a second
WIDTH, KERNEL = 64, 3
DILATIONS = (1, 2, 4, 8)
KEYWORDS = 12


def causal(channels_in: int, channels_out: int, dilation: int) -> nn.Sequential:
    """Return a causal convolution with batch norm and ReLU."""
    return nn.Sequential(
        nn.ConstantPad1d(((KERNEL - 1) * dilation, 0), 0.0),
        nn.Conv1d(channels_in, channels_out, KERNEL, dilation=dilation, bias=False),
        nn.BatchNorm1d(channels_out),
        nn.ReLU(),
    )


class Block(nn.Module):
    """Two causal convolutions and a shortcut, by a 1x1 convolution where the width changes."""

    def __init__(self, channels_in: int, channels_out: int, dilation: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            causal(channels_in, channels_out, dilation), causal(channels_out, channels_out, dilation)
        )
        same = channels_in == channels_out
        self.shortcut = nn.Identity() if same else nn.Conv1d(channels_in, channels_out, 1)
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.relu(self.layers(x) + self.shortcut(x))
        return result


class Tcn(nn.Module):
    """Four residual blocks with dilations 1 to 8 over 40 bands and 96 frames, the mean over time, 12 keywords.

    >>> Tcn().eval()(torch.zeros(1, 40, 96)).shape
    torch.Size([1, 12])
    """

    def __init__(self) -> None:
        super().__init__()
        widths = [BANDS] + [WIDTH] * len(DILATIONS)
        self.blocks = nn.Sequential(*(Block(a, b, d) for a, b, d in zip(widths, widths[1:], DILATIONS, strict=False)))
        self.pool = nn.AdaptiveAvgPool1d(1)
        self.classifier = nn.Linear(WIDTH, KEYWORDS)

    def forward(self, bands: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.classifier(self.pool(self.blocks(bands)).flatten(1))
        return logits


def load() -> ZooModel:
    """Return the network with seeded weights."""
    return make_untrained("tcn", Tcn(), (1, BANDS, FRAMES), "Temporal convolutional keyword spotter, 1-D and causal")
