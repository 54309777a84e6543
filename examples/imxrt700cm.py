"""Recipe for i.MX RT700: prints the engine of every operator of some networks, and runs the mixed programs.

    python examples/imxrt700cm.py                     # a few networks
    python examples/imxrt700cm.py mixed mobilenet_v2  # these of them, or any model of the zoo

Each program is compiled with the recipe "imxrt700cm", run in the stock ExecuTorch runtime on this machine, and compared with
the quantized PyTorch module. The exit code is 1 when one differs by more than rounding explains.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

import openneutron
from openneutron.terminal.quiet import quiet

with quiet():  # dependencies of torch announce what they cannot load
    import torch
    from torch import nn

    from openneutron import zoo

ENGINES = ("neutron", "cortex_m", "portable")
# Of 255: rounding differs between the engines and PyTorch, by a step or so per operator.
MOST_STEPS_APART = 16


@dataclass(frozen=True)
class Case:
    """A network with inputs."""

    model: nn.Module
    inputs: tuple[torch.Tensor, ...]
    calibration: list[tuple[torch.Tensor, ...]]


class Mixed(nn.Module):
    """Convolutions, logarithms and a division for the NPU; topk for neither engine."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        y = self.second(x)
        x = torch.log1p(torch.relu(x + y)) / (y.abs() + 2.0)
        return self.head((torch.topk(x, x.shape[1], 1)[0] + y).mean((2, 3)))


class Ratio(nn.Module):
    """A division, which the NPU computes as a product with a lookup table."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / x.flip(2) / x.flip(3)


class Sums(nn.Module):
    """Operators that neither engine has, after a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.topk(
            torch.topk(self.conv(x), self.conv(x).shape[1], 1)[0],
            torch.topk(self.conv(x), self.conv(x).shape[1], 1)[0].shape[2],
            2,
        )[0]


def from_zoo(name: str) -> Case:
    model = zoo.load(name)
    return Case(model.model, model.example_inputs, model.calibration[:20])


def seeded(make: Callable[[], nn.Module]) -> Case:
    torch.manual_seed(0)
    inputs = [(torch.rand(1, 3, 32, 32) + 0.5,) for _ in range(4)]
    return Case(make().eval(), inputs[0], inputs)


CASES: dict[str, Callable[[], Case]] = {
    "cifarnet": lambda: from_zoo("cifarnet"),
    "resnet8": lambda: from_zoo("resnet8"),
    "ds_cnn": lambda: from_zoo("ds_cnn"),
    "mobilenet_v2_cifar": lambda: from_zoo("mobilenet_v2_cifar"),
    "mixed": lambda: seeded(Mixed),
    "ratio": lambda: seeded(Ratio),
    "sums": lambda: seeded(Sums),
}


def main(names: Sequence[str] = ()) -> int:
    """Compile and run the named networks; the exit code."""
    console = Console(width=max(Console().width, 110))  # as wide as the table, also in a pipe
    table = Table(title="Operators per engine, quantize and dequantize left out; times are estimates for i.MX RT700")
    for heading in ("network", *ENGINES, "NPU ms", "CPU ms", "whole ms", "bytes", "steps apart"):
        table.add_column(heading, justify="left" if heading == "network" else "right")
    left: list[tuple[str, str, str, str]] = []
    apart_most = 0.0
    for name in names or CASES:
        with console.status(name), quiet():
            case = CASES[name]() if name in CASES else from_zoo(name)
            program = openneutron.compile(case.model, case.inputs, calibration=case.calibration, recipe="imxrt700cm")
            apart = steps_apart(program, case)
        apart_most = max(apart_most, apart)
        nodes = [node for node in program.verdicts if "quantize_per" not in node.operator]
        count = Counter(node.engine for node in nodes)
        whole = program.report.whole
        table.add_row(
            name, *(str(count[engine]) for engine in ENGINES), f"{whole.npu_milliseconds:.3f}", f"{whole.cpu_milliseconds:.3f}",
            f"{whole.milliseconds:.3f}", f"{whole.memory_bytes:,}", f"{apart:.0f}",
        )  # fmt: skip
        left += [(name, node.operator, node.engine, node.reason) for node in nodes if node.engine != "neutron"]
    console.print(table)
    if left:
        console.print(leftovers(left))
    return 0 if apart_most <= MOST_STEPS_APART else 1


def steps_apart(program: openneutron.Program, case: Case) -> float:
    """Return the largest difference from the quantized PyTorch module, in 255ths of the output range."""
    with torch.no_grad():
        answers = program.quantized(*case.inputs)
    wanted = answers if isinstance(answers, tuple) else (answers,)
    apart = 0.0
    for here, there in zip(program.run(*case.inputs), wanted, strict=True):
        reach = float(there.max() - there.min()) or 1.0
        apart = max(apart, float((here - there).abs().max()) / reach * 255)
    return apart


def leftovers(rows: list[tuple[str, str, str, str]]) -> Table:
    table = Table(title="What the NPU left, who took it, and why")
    for heading in ("network", "operator", "engine", "why"):
        table.add_column(heading, overflow="fold")
    for row in dict.fromkeys(rows):
        table.add_row(*row)
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
