"""PyTorch leaves an as_strided behind global pooling of channels-last images; it changes nothing."""

from __future__ import annotations

import torch
from torch import nn

from tests.executorch.harness import check


def test_strides_that_stay_cost_nothing() -> None:
    x = torch.randn(1, 3, 8, 8).to(memory_format=torch.channels_last)
    made = check({"pooled": lambda: (nn.Sequential(nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(1)), (x,))})
    assert "aten.as_strided_copy.default" in {node.operator for node in made.built.report.nodes if node.delegated}
    assert set(made.codes) <= {"CONV_2D", "MEAN", "RESHAPE"}
