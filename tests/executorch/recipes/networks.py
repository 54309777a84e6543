"""Networks for recipe tests: small, and each with a reason."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from tests.executorch.ordered import ordered

Inputs = tuple[torch.Tensor, ...]


class ThreeEngines(nn.Module):
    """Neutron takes the convolutions, Cortex-M log1p and the product, portable kernels the sine; branches cross."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.first(x)))
        y = self.second(x)
        z = torch.log1p(torch.relu(x + y)) * (y.abs() + 2.0)
        z = torch.sin(z) + x
        return self.head(functional.max_pool2d(functional.avg_pool2d(z, 4), 2).mean((2, 3)))


class Crossing(nn.Module):
    """A branch that goes to Cortex-M and back while the other stays on the NPU, twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        y = self.second(x) + torch.log1p(torch.relu(x))
        return self.second(y) + torch.log1p(torch.relu(y))


class OnlyCortexM(nn.Module):
    """Nothing for the NPU: operators that only Cortex-M has."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.log1p(torch.log2(x.abs() + 1.5) * (torch.log10(y.abs() + 1.5) + 0.5))


class OnlyLogs(nn.Module):
    """Two operators in a row that only Cortex-M has, on images of one channel."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log1p(torch.log1p(x))


class Neither(nn.Module):
    """A convolution, and operators that neither engine has."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ordered(torch.sin(self.conv(x)))


class NormedLinear(nn.Module):
    """Every kind of batch norm that training must fold: behind a convolution with and without bias, shared, linear."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.left = nn.Conv2d(8, 8, 3, padding=1)
        self.right = nn.Conv2d(8, 8, 1, bias=False)
        self.shared = nn.BatchNorm2d(8)
        self.bare = nn.Conv2d(8, 8, 1, bias=False)
        self.linear = nn.Linear(8, 10)
        self.last = nn.BatchNorm1d(10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.plain(x)))
        x = torch.relu(self.shared(self.left(x)) + self.shared(self.right(x)))
        return self.last(self.linear(self.bare(x).mean((2, 3))))


def images(count: int, *shape: int, seed: int = 0) -> list[Inputs]:
    """Seeded inputs of one tensor."""
    generator = torch.Generator().manual_seed(seed)
    return [(torch.randn(shape or (1, 3, 16, 16), generator=generator),) for _ in range(count)]


def settled(model: nn.Module) -> nn.Module:
    """The model in evaluation mode, its norms having seen data."""
    torch.manual_seed(0)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.running_mean.uniform_(-0.5, 0.5)  # type: ignore[union-attr]
            module.running_var.uniform_(0.5, 2.0)  # type: ignore[union-attr]
    return model.eval()
