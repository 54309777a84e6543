"""Compiles a small PyTorch program, part of which stays outside its delegate, with the files of its debug bundle."""

from __future__ import annotations

from collections.abc import Callable

import torch

import openneutron


class Small(torch.nn.Module):
    """A convolution, and a sine, which has no kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Conv2d(3, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(torch.relu(self.layer(x)))


def compiled_program() -> tuple[bytes, Callable[[str], bytes]]:
    """Return the .pte, and a function that returns its bundle's files by name."""
    torch.manual_seed(0)
    given = (torch.randn(1, 3, 6, 6),)
    made = openneutron.compile(Small().eval(), given, calibration=[given], dump_intermediates=True)

    def part(name: str) -> bytes:
        found = made.intermediates[name]
        return found.encode() if isinstance(found, str) else found

    return made.data, part
