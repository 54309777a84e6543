"""The quick search finds torchao's ranges."""

from __future__ import annotations

import pytest
import torch
from torchao.quantization.pt2e.observer import HistogramObserver

from openneutron.executorch.upstream.histogram import QuickHistogramObserver

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


@pytest.mark.parametrize("shape", ["normal", "long tail", "two values"])
def test_every_range_on_the_way_is_the_same(monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    """With an error that never grows, the search goes on until the quantiles meet."""
    torch.manual_seed(0)
    values = SHAPES[shape]()
    tried: dict[type, list[tuple[int, int]]] = {}
    for kind in (HistogramObserver, QuickHistogramObserver):
        observer = kind(bins=64)
        observer(values)
        ranges = tried.setdefault(kind, [])

        def note(start: int, end: int, ranges: list[tuple[int, int]] = ranges) -> float:
            ranges.append((start, end))
            return 0.0

        monkeypatch.setattr(observer, "_compute_quantization_error", note)
        observer._non_linear_param_search()
    assert tried[HistogramObserver] == tried[QuickHistogramObserver] != []
