"""Kernel selections of PyTorch programs: one for each partition, and the one for all."""

from __future__ import annotations

import pytest
import torch

import openneutron
from openneutron.compiler import kernels
from openneutron.executorch.pipeline import merge_selections
from openneutron.microcode.selection import parse, selection_code

kernels.rules()
NXPS = (
    "/* somebody else's */\ntypedef enum NeutronKernelKind {} NeutronKernelKind;\nint32_t (*neutronKernels[1])(void);\n"
)


class TwoParts(torch.nn.Module):
    """A sigmoid that is kept on the CPU cuts it in two."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 4, 3)
        self.second = torch.nn.Linear(4 * 6 * 6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.sigmoid(self.first(x)).flatten(1))


def test_each_partition_has_its_selection() -> None:
    torch.manual_seed(1)
    image = torch.randn(1, 3, 8, 8)
    program = openneutron.compile(
        TwoParts().eval(),
        (image,),
        calibration=[(image,)],
        dump_kernel_selection_code=True,
        operators_not_to_delegate=["aten.sigmoid.default"],
    )
    parts = [set(parse("part", code).kernels.values()) for code in program.kernel_selections]
    assert len(parts) == 2
    assert "conv2d" in parts[0] and "fully_connected" in parts[1]
    assert set(parse("all", program.kernel_selection).kernels.values()) == parts[0] | parts[1]


@pytest.mark.parametrize(
    ("selections", "expected"),
    [
        ([], ""),
        ([selection_code([1], "imxrt700", "0.1.0")], selection_code([1], "imxrt700", "0.1.0")),
        (
            [selection_code([1], "imxrt700", "0.1.0"), selection_code([4], "imxrt700", "0.1.0")],
            selection_code([1, 4], "imxrt700", "0.1.0"),
        ),
        ([NXPS], NXPS),
        ([NXPS, NXPS], ""),
    ],
    ids=["none", "one", "two", "NXP's", "two of NXP's"],
)
def test_selections_of_partitions_merge_where_they_are_ours(selections: list[str], expected: str) -> None:
    assert merge_selections(selections) == expected
