"""States that no input changes count exactly, for longer than calibration did."""

from __future__ import annotations

import torch
from torch import nn

import openneutron


class Counting(nn.Module):
    """A layer with a sum of its own, a counter, and another one that grows with the first."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        for name in ("count", "area"):
            self.register_buffer(name, torch.zeros(1))
        self.register_buffer("total", torch.zeros(1, 4))
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = self.layer(x).relu()
        self.count += 1
        self.area += 2 * self.count
        self.calls += 1
        self.total.copy_(0.5 * self.total + x)
        return self.total + 0, self.count.clone(), self.area.clone(), self.calls.clone()


def test_counters_do_not_stick_and_other_states_stay_on_the_npu() -> None:
    torch.manual_seed(0)
    samples = [(torch.randn(1, 4),) for _ in range(8)]
    program = openneutron.compile(Counting().eval(), samples[0], calibration=samples, quality="plain")
    program.reset()
    found = [[float(one.reshape(-1)[0]) for one in program.run(*samples[at % 8])[1:]] for at in range(20)]
    assert found == [[at, at * (at + 1), at] for at in range(1, 21)]
    left = {one.code for one in program.report.nodes if not one.delegated and one.code != "border"}
    assert left == {"counter", "other_type"}
    kept = [one.operator for one in program.report.nodes if one.delegated]
    assert sum("add" in one for one in kept) >= 1 and any("linear" in one or "addmm" in one for one in kept)


def test_an_option_gives_states_room() -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(1, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total += x
            return self.total.clone()

    ones = [(torch.ones(1, 4),)] * 8
    program = openneutron.compile(Sum(), ones[0], calibration=ones, quality="plain", state_headroom=4.0)
    program.reset()
    last = [float(program.run(*ones[0])[0][0, 0]) for _ in range(40)][-1]
    assert 30 < last < 34 and not program.report.warnings
