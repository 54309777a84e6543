"""The quick search finds torchao's ranges."""

from __future__ import annotations

import pytest
import torch
from torchao.quantization.pt2e.observer import HistogramObserver

from openneutron.executorch.quantize.histogram import QuickHistogramObserver

SHAPES = {
    "normal": lambda: torch.randn(4096),
    "one-sided": lambda: torch.randn(4096).relu(),
    "outliers": lambda: torch.cat([torch.randn(4096), torch.tensor([40.0, -75.0])]),
    "long tail": lambda: torch.randn(4096).exp(),
    "two values": lambda: torch.tensor([0.0, 1.0]).repeat(64),
    "nothing": lambda: torch.zeros(16),
    "one side far": lambda: -(torch.rand(2048) ** 8) * 100,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.int8, torch.int16], ids=str)
def test_the_same_range(shape: str, dtype: torch.dtype) -> None:
    for seed in range(3):
        torch.manual_seed(seed)
        batches = [SHAPES[shape]() for _ in range(2)]
        bits = torch.iinfo(dtype)
        given = {"dtype": dtype, "quant_min": bits.min, "quant_max": bits.max}
        found = []
        for kind in (HistogramObserver, QuickHistogramObserver):
            observer = kind(**given)
            for batch in batches:
                observer(batch)
            found.append(observer._non_linear_param_search())
        assert found[0] == found[1]
