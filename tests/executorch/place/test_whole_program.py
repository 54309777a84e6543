"""Time of a whole program: the CPU's total is the sum of its nodes, calls and copies."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from openneutron.executorch.pipeline import compile_module

IMAGE = (torch.linspace(-1, 1, 3 * 16 * 16).reshape(1, 3, 16, 16),)


class Split(nn.Module):
    """Two convolutions around an operator that the NPU has no kernel for."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        return self.second(torch.atan2(y, y * y + 1))


@pytest.mark.parametrize("target", ["imxrt700", "imx95"])
def test_parts_sum_up_in_both_columns(target: str) -> None:
    report = compile_module(Split(), IMAGE, calibration=[IMAGE], target=target, quality="plain").report
    whole, stock = report.whole, report.stock
    assert report.totals.neutron_graphs == 2 and whole.cpu
    for engines, total in (
        (("portable",), whole.cpu_milliseconds), (("call",), whole.call_milliseconds), (("copy",), whole.copy_milliseconds),
    ):  # fmt: skip
        assert math.fsum(one.milliseconds for one in whole.cpu if one.engine in engines) == pytest.approx(total)
    assert math.fsum(one.cpu_milliseconds for one in report.nodes) == pytest.approx(whole.cpu_milliseconds)
    assert all((one.cpu_milliseconds > 0) is not one.delegated for one in report.nodes)
    assert math.fsum(one.milliseconds for one in stock.cpu) == pytest.approx(stock.cpu_milliseconds)
    assert sum(one.engine in ("portable", "cortex_m") for one in whole.cpu) == whole.cpu_operators
    assert {one.name for one in stock.cpu if one.engine == "call"} == {"NeutronGraph 0", "NeutronGraph 1"}
    assert "input x" in {one.layer for one in whole.cpu}
    assert not any("_default" in one.layer for one in whole.cpu)


def test_a_chip_without_a_model_of_its_cpu_has_no_parts() -> None:
    from openneutron.executorch.place.whole_program import whole_program

    program = torch.export.export(Split(), IMAGE)
    found = whole_program(program, [], target="unknown", recipe="neutron", arena_bytes=0)
    assert not found.cpu and not found.timed and found.cpu_operators > 0
