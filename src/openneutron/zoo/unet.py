"""A small U-Net (Ronneberger et al., 2015) for segmenting 64x64 images into four classes, untrained."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._blocks import conv_norm
from openneutron.zoo._model import ZooModel
from openneutron.zoo._untrained import make_untrained

# Channels of each level; the original begins with 64, too many for a microcontroller's SRAM.
WIDTHS = (16, 32, 64, 128)
CLASSES = 4


def double(channels_in: int, channels_out: int) -> nn.Sequential:
    """Return two 3x3 convolutions with batch norm and ReLU."""
    return nn.Sequential(conv_norm(channels_in, channels_out, 3), conv_norm(channels_out, channels_out, 3))


class UNet(nn.Module):
    """Four levels down by max pooling, up again by transposed convolutions, with skip connections at each level.

    >>> UNet().eval()(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 4, 64, 64])
    """

    def __init__(self) -> None:
        super().__init__()
        inputs = (3, *WIDTHS[:-1])
        self.down = nn.ModuleList(double(a, b) for a, b in zip(inputs, WIDTHS, strict=True))
        pairs = list(zip(WIDTHS[1:], WIDTHS[:-1], strict=True))[::-1]
        self.up = nn.ModuleList(nn.ConvTranspose2d(wide, narrow, 2, stride=2) for wide, narrow in pairs)
        self.join = nn.ModuleList(double(2 * narrow, narrow) for _, narrow in pairs)
        self.pool = nn.MaxPool2d(2)
        self.classes = nn.Conv2d(WIDTHS[0], CLASSES, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = images
        seen: list[torch.Tensor] = []
        for level in self.down:
            x = level(self.pool(x) if seen else x)
            seen.append(x)
        for up, join, skip in zip(self.up, self.join, seen[-2::-1], strict=True):
            x = join(torch.cat([skip, up(x)], dim=1))
        logits: torch.Tensor = self.classes(x)
        return logits


def load() -> ZooModel:
    """Return the network with seeded weights."""
    return make_untrained("unet", UNet(), (1, 3, 64, 64), "U-Net for segmentation at 64x64")
