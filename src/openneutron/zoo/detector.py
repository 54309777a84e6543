"""An object detector with two heads: boxes and scores at two scales, four outputs; untrained."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._blocks import conv_norm, separable
from openneutron.zoo._model import ZooModel
from openneutron.zoo._untrained import make_untrained

CLASSES = 20  # of Pascal VOC
ANCHORS = 3  # box shapes per place, as YOLO's small networks have
BOX = 4  # centre and size


class Head(nn.Module):
    """A separable block, then 1x1 convolutions to boxes [N, places * anchors, 4] and scores [N, places * anchors, 20]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.block = separable(channels, channels)
        self.boxes = nn.Conv2d(channels, ANCHORS * BOX, 1)
        self.scores = nn.Conv2d(channels, ANCHORS * CLASSES, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.block(x)
        boxes = self.boxes(x).permute(0, 2, 3, 1).reshape(x.shape[0], -1, BOX)
        scores = self.scores(x).permute(0, 2, 3, 1).reshape(x.shape[0], -1, CLASSES)
        return boxes, torch.sigmoid(scores)


class Detector(nn.Module):
    """Separable convolutions to strides 16 and 32; the coarse features return, upsampled, to the fine head.

    Gives boxes and scores of the fine scale, then of the coarse one.

    >>> [tuple(y.shape) for y in Detector().eval()(torch.zeros(1, 3, 160, 160))]
    [(1, 300, 4), (1, 300, 20), (1, 75, 4), (1, 75, 20)]
    """

    def __init__(self) -> None:
        super().__init__()
        self.fine = nn.Sequential(
            conv_norm(3, 16, 3, stride=2),
            separable(16, 32, stride=2),
            separable(32, 64, stride=2),
            separable(64, 64),
            separable(64, 128, stride=2),
            separable(128, 128),
        )
        self.coarse = nn.Sequential(separable(128, 256, stride=2), separable(256, 256))
        self.narrow = conv_norm(256, 64, 1)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.merge = conv_norm(128 + 64, 128, 1)
        self.fine_head = Head(128)
        self.coarse_head = Head(256)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        fine = self.fine(images)
        coarse = self.coarse(fine)
        fine = self.merge(torch.cat([fine, self.up(self.narrow(coarse))], dim=1))
        return (*self.fine_head(fine), *self.coarse_head(coarse))


def load() -> ZooModel:
    """Return the network with seeded weights."""
    return make_untrained(
        "detector", Detector(), (1, 3, 160, 160), "Two-headed object detector at 160x160, four outputs"
    )
