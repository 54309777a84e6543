"""Small networks that lose accuracy in known places."""

from __future__ import annotations

import torch
from torch import nn


class Uneven(nn.Module):
    """Channels whose ranges differ by four powers of ten: one scale for all of a tensor loses most of them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.third, self.head = nn.Conv2d(16, 16, 3, padding=1), nn.Linear(16, 6)
        with torch.no_grad():
            self.first.weight *= torch.logspace(-2, 2, 16).reshape(-1, 1, 1, 1)
            self.second.weight /= torch.logspace(-2, 2, 16).reshape(1, -1, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.second(torch.relu(self.first(x))))
        return self.head((torch.relu(self.third(y)) + y).mean((2, 3)))


class Stream(nn.Module):
    """A residual stream with one huge feature that nothing reads: INT8 rounds all others to nothing, 16 bits keep them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.enter, self.leave = nn.Linear(8, 16), nn.Linear(16, 4)
        self.inner = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
        with torch.no_grad():
            self.enter.weight[0] *= 40
            for one in (*self.inner, self.leave):
                one.weight[:, 0] = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.enter(x)
        for one in self.inner:
            x = x + torch.tanh(one(x))
        return self.leave(x)


class Spectrum(nn.Module):
    """Lengths of complex numbers, of which most are far below the largest: squares in 8 bits leave them nothing."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.leave, self.loudness = nn.Linear(8, 4), torch.logspace(0, -2, 8)
        with torch.no_grad():
            self.leave.weight /= self.loudness

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        real, imaginary = x[:, :5] * self.loudness, x[:, 5:] * self.loudness
        return self.leave(torch.sqrt(real * real + imaginary * imaginary))


def images(count: int = 8) -> list[tuple[torch.Tensor, ...]]:
    """Pictures of noise, always the same."""
    made = torch.Generator().manual_seed(0)
    return [(torch.randn(1, 3, 12, 12, generator=made),) for _ in range(count)]


def rows(count: int = 8) -> list[tuple[torch.Tensor, ...]]:
    """Sequences of noise, always the same."""
    made = torch.Generator().manual_seed(0)
    return [(torch.randn(1, 10, 8, generator=made),) for _ in range(count)]
