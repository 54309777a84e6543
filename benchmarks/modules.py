"""PyTorch networks with random weights, for measuring lowering time: their results do not matter here.

Layers are public facts: YOLOv8 of Ultralytics, without what decodes boxes on the CPU. Networks of timm are those of
`tests/models/networks.txt`, where timm is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

SAMPLES = 4  # calibration inputs: enough for the observers, few enough to take little time


@dataclass(frozen=True)
class Given:
    """A module with the other arguments of `openneutron.compile`."""

    model: nn.Module
    inputs: tuple[torch.Tensor, ...]
    calibration: list[tuple[torch.Tensor, ...]]


def _block(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.SiLU())


class _Bottleneck(nn.Module):
    def __init__(self, channels: int, shortcut: bool) -> None:
        super().__init__()
        self.inner = nn.Sequential(_block(channels, channels, 3), _block(channels, channels, 3))
        self.shortcut = shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.inner(x)
        return x + y if self.shortcut else y


class _C2f(nn.Module):
    """All steps of a chain of bottlenecks, joined with the chain's input."""

    def __init__(self, inputs: int, outputs: int, count: int, shortcut: bool = True) -> None:
        super().__init__()
        half = outputs // 2
        self.enter = _block(inputs, outputs, 1)
        self.steps = nn.ModuleList(_Bottleneck(half, shortcut) for _ in range(count))
        self.leave = _block((2 + count) * half, outputs, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = list(self.enter(x).chunk(2, 1))
        for step in self.steps:
            parts.append(step(parts[-1]))
        y: torch.Tensor = self.leave(torch.cat(parts, 1))
        return y


class _Pools(nn.Module):
    """Max pools of 5, 9 and 13 as three of 5, beside their input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.enter = _block(channels, channels // 2, 1)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.leave = _block(2 * channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [self.enter(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        y: torch.Tensor = self.leave(torch.cat(parts, 1))
        return y


class _Head(nn.Module):
    """Boxes (distances to four sides as 16 bins each) and 80 scores at one scale."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.boxes = nn.Sequential(_block(channels, 64, 3), _block(64, 64, 3), nn.Conv2d(64, 64, 1))
        self.scores = nn.Sequential(_block(channels, 80, 3), _block(80, 80, 3), nn.Conv2d(80, 80, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.boxes(x), self.scores(x)], 1)


class _YoloV8n(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.p3 = nn.Sequential(
            _block(3, 16, 3, 2), _block(16, 32, 3, 2), _C2f(32, 32, 1), _block(32, 64, 3, 2), _C2f(64, 64, 2)
        )
        self.p4 = nn.Sequential(_block(64, 128, 3, 2), _C2f(128, 128, 2))
        self.p5 = nn.Sequential(_block(128, 256, 3, 2), _C2f(256, 256, 1), _Pools(256))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.n4 = _C2f(384, 128, 1, shortcut=False)
        self.n3 = _C2f(192, 64, 1, shortcut=False)
        self.down3 = _block(64, 64, 3, 2)
        self.out4 = _C2f(192, 128, 1, shortcut=False)
        self.down4 = _block(128, 128, 3, 2)
        self.out5 = _C2f(384, 256, 1, shortcut=False)
        self.heads = nn.ModuleList(_Head(channels) for channels in (64, 128, 256))

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, ...]:
        p3 = self.p3(images)
        p4 = self.p4(p3)
        p5 = self.p5(p4)
        n4 = self.n4(torch.cat([self.up(p5), p4], 1))
        out3 = self.n3(torch.cat([self.up(n4), p3], 1))
        out4 = self.out4(torch.cat([self.down3(out3), n4], 1))
        out5 = self.out5(torch.cat([self.down4(out4), p5], 1))
        return tuple(head(out) for head, out in zip(self.heads, (out3, out4, out5), strict=True))


class _BiLstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.LSTM(40, 64, num_layers=2, bidirectional=True, batch_first=True)
        self.last = nn.Linear(128, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.last(self.layers(x)[0][:, -1])
        return y


def yolov8n() -> Given:
    """YOLOv8n at 640x640."""
    return _given(_YoloV8n(), (1, 3, 640, 640))


def bilstm() -> Given:
    """Two bidirectional LSTM layers over 50 steps."""
    return _given(_BiLstm(), (1, 50, 40))


def tiny() -> Given:
    """Return a network to lower first, so that imports and other one-time costs are not counted."""
    layers = nn.Sequential(nn.Conv2d(3, 2, 3), nn.BatchNorm2d(2), nn.ReLU())
    return _given(layers, (1, 3, 4, 4))


MODULES: dict[str, Callable[[], Given]] = {"yolov8n": yolov8n, "bilstm": bilstm}


def load(name: str) -> Given:
    """Return a network of this file, of the zoo, or of timm at its own resolution."""
    from openneutron import zoo
    from tests.models import libraries

    torch.manual_seed(0)
    if name in MODULES:
        return MODULES[name]()
    if name in zoo.names():
        found = zoo.load(name)
        return Given(found.model, found.example_inputs, list(found.calibration[:SAMPLES]))
    listed = next(one for one in libraries.networks() if one.key == f"timm {name}")
    return _given(libraries.make(listed), (1, 3, listed.pixels, listed.pixels))


def _given(model: nn.Module, shape: tuple[int, ...]) -> Given:
    inputs = [(torch.randn(shape),) for _ in range(SAMPLES)]
    return Given(model.eval(), inputs[0], inputs)
