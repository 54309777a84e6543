"""Your own PyTorch network: quantize, compile, run, and see what the NPU cannot run.

    python examples/own_cnn.py

The network is deliberately not perfect: `topk` has no kernel on the NPU, so the report names it, its line in this file, and
the reason.
"""

from __future__ import annotations

import torch
from torch import nn

import openneutron as on


class Net(nn.Module):
    """A small classifier with one operator in the middle that stays on the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.body = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.Hardswish(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(32, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.stem(image)
        x = torch.topk(x, x.shape[1], 1)[0]
        return self.head(torch.flatten(self.body(x), 1))


def main() -> on.Program:
    torch.manual_seed(0)
    model = Net().eval()
    # Use a few hundred real inputs in practice: they determine the ranges of the INT8 values.
    images = torch.rand(32, 3, 32, 32)

    program = on.compile(model, (images[:1],), calibration=[images], target="imxrt700", name="own_cnn")
    program.save("own_cnn.pte")
    print(program)

    for node in program.verdicts:
        if not node.delegated and node.code != "border":
            line = f" ({node.source.strip()})" if node.source else ""  # nodes added by quantization have none
            print(f"{node.name} stays on the CPU: {node.reason}{line}")

    (scores,) = program.run(images[:1])
    error = (scores - model(images[:1])).abs().max().item()
    print(f"largest difference from float: {error:.4f}")
    return program


if __name__ == "__main__":
    main()
