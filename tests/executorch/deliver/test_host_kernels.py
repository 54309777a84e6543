"""A program that the device could not load is refused when it is compiled, naming the operator."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.errors import UnsupportedError
from openneutron.executorch.deliver.host_kernels import check_host_kernels, host_kernels
from openneutron.report.model import NodeVerdict

IMAGE = torch.rand(1, 3, 8, 8)


class Ending(nn.Module):
    """A convolution and something behind it."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.conv, self.kind = nn.Conv2d(3, 4, 3), kind

    def forward(self, x: torch.Tensor) -> object:
        y = self.conv(x)
        if self.kind == "pool":
            return nn.functional.avg_pool3d(y.unsqueeze(1), 2, divisor_override=3)
        if self.kind == "volume":
            return nn.functional.conv3d(y.unsqueeze(1), y.reshape(2, 1, 2, 6, 6))
        if self.kind == "fft":
            return torch.fft.fft(y).abs()
        return torch.topk(y.flatten(1), 3)


def compiled(kind: str) -> on.Program:
    return on.compile(Ending(kind).eval(), (IMAGE,), calibration=[(IMAGE,)])


def test_the_lists_of_the_package_are_read() -> None:
    assert {"aten::add.out", "quantized_decomposed::quantize_per_tensor.out"} <= host_kernels()
    assert "aten::avg_pool3d.out" not in host_kernels()


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("pool", "nothing can run aten.avg_pool3d"),
        ("fft", r"aten\._fft_"),
        ("volume", r"nothing can run aten_convolution.*test_host_kernels.py:\d+.* convolution over 3 dimensions"),
    ],
)
def test_nobody_could_run_it(kind: str, told: str) -> None:
    with pytest.raises(UnsupportedError, match=told):
        compiled(kind)


def test_results_with_names_come_back_as_a_tuple() -> None:
    values, positions = compiled("topk").run(IMAGE)
    assert values.shape == positions.shape == (1, 3)
    assert positions.dtype == torch.int64


def test_the_reason_of_the_node_is_told() -> None:
    node = NodeVerdict(
        "sort", "aten.sort.default", False, reason="operator aten.sort.default has no lowering", source="a.py:3"
    )
    with pytest.raises(UnsupportedError, match=r"\(sort, a.py:3\).*because operator aten.sort.default has no lowering"):
        check_host_kernels(["aten::add.out", "executorch_prim::add.Scalar", "aten::sort.values"], [node])
