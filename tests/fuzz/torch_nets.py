"""Random PyTorch networks: branches with several results and batches, recurrent layers, modules that keep a buffer."""

from __future__ import annotations

from typing import Any

import numpy as np

Net = tuple[Any, tuple[Any, ...]]  # a module and its inputs


def branches(rng: np.random.Generator) -> Net:
    """Two convolutional paths, joined; one, two or three results, batches of one to three."""
    import torch
    from torch import nn

    width, count = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    kinds = (nn.ReLU, nn.Sigmoid, nn.Hardswish, nn.SiLU, nn.Softplus, nn.Tanh, nn.GELU)

    def path() -> nn.Sequential:
        layers: list[nn.Module] = [nn.Conv2d(3, width, int(rng.choice([1, 3])), padding="same")]
        for _ in range(int(rng.integers(1, 4))):
            layers.append(kinds[int(rng.integers(len(kinds)))]())
            layers.append(nn.Conv2d(width, width, 3, padding=1, groups=int(rng.choice([1, width]))))
        return nn.Sequential(*layers)

    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.head = path(), path(), nn.Linear(width, int(rng.integers(1, 6)))

        def forward(self, x: Any) -> Any:
            a, b = self.a(x), self.b(x)
            joined = a + b
            results = (self.head(joined.mean((2, 3))), joined, torch.cat([a, b], 1))
            return results[:count]

    size = (int(rng.integers(1, 4)), 3, int(rng.integers(6, 14)), int(rng.integers(6, 14)))
    return Branches().eval(), (torch.randn(size),)


def recurrent(rng: np.random.Generator) -> Net:
    """A layer that steps through time."""
    import torch
    from torch import nn

    kind = (nn.GRU, nn.LSTM, nn.RNN)[int(rng.integers(3))]
    inputs, cells, both = int(rng.integers(2, 9)), int(rng.integers(2, 13)), bool(rng.integers(2))

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = kind(inputs, cells, batch_first=True, bidirectional=both)
            self.head = nn.Linear(cells * (2 if both else 1), 3)

        def forward(self, x: Any) -> Any:
            return self.head(self.layer(x)[0][:, -1])

    return Recurrent().eval(), (torch.randn(int(rng.integers(1, 3)), int(rng.integers(2, 9)), inputs),)


def streaming(rng: np.random.Generator) -> Net:
    """A cell whose state is a buffer: it is kept from run to run."""
    import torch
    from torch import nn

    inputs, cells = int(rng.integers(2, 9)), int(rng.integers(2, 13))

    class Streaming(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.GRUCell(inputs, cells), nn.Linear(cells, 2)
            self.register_buffer("hidden", torch.zeros(1, cells))

        def forward(self, frame: Any) -> Any:
            hidden = self.cell(frame, self.hidden)
            self.hidden.copy_(hidden)
            return self.head(hidden)

    return Streaming().eval(), (torch.randn(1, inputs),)
