from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.executorch.harness import check, reasons

CASES = {
    "same padding": lambda: (nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU()), (torch.randn(1, 3, 9, 7),)),
    "strided, explicit padding": lambda: (nn.Conv2d(4, 6, 3, stride=2, padding=1), (torch.randn(2, 4, 8, 8),)),
    "one channel, dilated": lambda: (nn.Conv2d(1, 5, 3, dilation=2, bias=False), (torch.randn(1, 1, 11, 9),)),
    "depthwise": lambda: (nn.Conv2d(6, 12, 3, groups=6, padding=1), (torch.randn(1, 6, 8, 8),)),
    "grouped, relu6": lambda: (nn.Sequential(nn.Conv2d(8, 4, 1, groups=2), nn.ReLU6()), (torch.randn(1, 8, 5, 5),)),
    "1-D": lambda: (nn.Conv1d(3, 8, 5, padding=2), (torch.randn(2, 3, 17),)),
}
TRANSPOSED = {
    "doubling": lambda: (nn.ConvTranspose2d(4, 6, 4, stride=2, padding=1), (torch.randn(1, 4, 5, 7),)),
    "output padding": lambda: (
        nn.ConvTranspose2d(3, 5, 3, stride=2, padding=1, output_padding=1),
        (torch.randn(1, 3, 4, 4),),
    ),
    "valid": lambda: (nn.ConvTranspose2d(2, 4, 3), (torch.randn(1, 2, 6, 5),)),
    "dilated": lambda: (nn.ConvTranspose2d(2, 4, 3, dilation=2), (torch.randn(1, 2, 6, 5),)),
    "two groups": lambda: (nn.ConvTranspose2d(6, 10, 3, stride=2, groups=2), (torch.randn(1, 6, 5, 5),)),
    "twelve groups, relu": lambda: (
        nn.Sequential(nn.ConvTranspose2d(12, 24, 4, 2, 1, groups=12, bias=False), nn.ReLU()),
        (torch.randn(1, 12, 5, 4),),
    ),
    "1-D": lambda: (nn.ConvTranspose1d(3, 4, 4, stride=2, padding=1), (torch.randn(1, 3, 9),)),
}


@pytest.mark.parametrize("per_channel", [False, True])
def test_plain(per_channel: bool) -> None:
    checked = check(CASES, layouts=True, per_channel=per_channel)
    assert checked.transposes == 0


@pytest.mark.parametrize("per_channel", [False, True])
def test_transposed(per_channel: bool) -> None:
    check(TRANSPOSED, per_channel=per_channel)


def test_transposes_inside_on_request() -> None:
    checked = check({"one": CASES["same padding"]}, use_neutron_for_format_conversion=True)
    assert checked.transposes == 2


def test_volumes_in_float_run_on_the_cpu_as_images() -> None:
    """ExecuTorch's runtime has no kernel for volumes."""
    layers = nn.Sequential(nn.ReLU(), nn.Conv3d(2, 3, 2))
    assert "kept_float" in reasons(layers, (torch.randn(1, 2, 4, 4, 4),), exclude=["Conv3d"])


def test_computed_weights_stay_on_cpu() -> None:
    found = reasons(torch.nn.functional.conv2d, (torch.randn(1, 2, 5, 5), torch.randn(3, 2, 3, 3)))
    assert "computed at run time" in found["constant_weights"]
