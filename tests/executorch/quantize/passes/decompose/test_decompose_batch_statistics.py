"""Batch norms over their own batch, and batch norms behind transposed convolutions in groups."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import openneutron as on

NO_STATISTICS = {"track_running_stats": False}
CASES: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "2-D": (nn.BatchNorm2d(8, **NO_STATISTICS), (1, 8, 6, 5)),
    "2-D behind a convolution": (nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8, **NO_STATISTICS)), (1, 4, 6, 5)),
    "1-D": (nn.BatchNorm1d(8, **NO_STATISTICS), (1, 8, 12)),
    "3-D, not affine": (nn.BatchNorm3d(4, affine=False, **NO_STATISTICS), (1, 4, 3, 4, 5)),
    "several samples": (nn.BatchNorm2d(4, **NO_STATISTICS), (3, 4, 6, 5)),
    "rows": (nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8, **NO_STATISTICS)), (6, 8)),
    "groups": (nn.Sequential(nn.ConvTranspose2d(8, 12, 3, groups=2), nn.BatchNorm2d(12)), (1, 8, 6, 5)),
    "groups, 1-D": (nn.Sequential(nn.ConvTranspose1d(8, 8, 3, groups=4), nn.BatchNorm1d(8)), (1, 8, 9)),
    "depth-wise": (
        nn.Sequential(nn.ConvTranspose2d(8, 8, 3, 2, groups=8, bias=False), nn.BatchNorm2d(8)),
        (1, 8, 4, 4),
    ),
    "instance": (nn.InstanceNorm2d(8, affine=True, track_running_stats=True), (1, 8, 6, 5)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_program_computes_what_the_module_does(case: str) -> None:
    torch.manual_seed(0)
    model, shape = CASES[case]
    for part in model.modules():
        if isinstance(part, nn.modules.batchnorm._NormBase):
            for value in (part.weight, part.bias, part.running_mean):
                if value is not None:
                    value.data.normal_()
            if part.running_var is not None:
                part.running_var.uniform_(0.5, 2)
    model.eval()
    samples = [(torch.randn(shape),) for _ in range(4)]
    program = on.compile(model, samples[0], calibration=samples)
    with torch.no_grad():
        wanted, found = model(*samples[1]), program.run(*samples[1])[0]
    assert float((wanted - found).square().sum()) < 0.003 * float(wanted.square().sum())
