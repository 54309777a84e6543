"""Index of the largest or smallest value: the program gives integers, computed on the NPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from openneutron.executorch.pipeline import build
from tests.executorch.harness import check, reasons

CASES = {
    "classes": lambda: (lambda x: x.argmax(1), (torch.randn(2, 10),)),
    "behind a layer": lambda: (lambda x: torch.relu(x).argmax(-1), (torch.randn(2, 3, 8),)),
    "channels of an image": lambda: (lambda x: x.argmax(1), (torch.randn(1, 5, 4, 6),)),
    "smallest of rows": lambda: (lambda x: x.argmin(0), (torch.randn(6, 4),)),
    "smallest behind a layer": lambda: (lambda x: torch.sigmoid(x).argmin(1), (torch.randn(2, 7),)),
}


def test_argminmax() -> None:
    codes = check(CASES).codes
    assert codes.count("ARG_MAX") == 3 and codes.count("ARG_MIN") == 2


def test_of_all_and_with_its_dimension_only_integers_are_reshaped_on_the_cpu() -> None:
    found = reasons(lambda x: (torch.relu(x).argmax(), x.argmax(1, keepdim=True)), (torch.randn(2, 10),))
    assert list(found) == ["other_type"] and "int64" in found["other_type"]


class Quantized(nn.Module):
    """A program that another quantizer made: nothing of it was rewritten."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        around = (0.05, 3, -128, 127, torch.int8)
        ops: Any = torch.ops.quantized_decomposed
        stored = ops.dequantize_per_tensor(ops.quantize_per_tensor(x, *around), *around)
        largest = ops.dequantize_per_tensor(ops.quantize_per_tensor(torch.relu(stored), *around), *around)
        return largest.argmax(), largest.argmax(1, keepdim=True), largest


def test_what_stays_has_a_reason() -> None:
    built = build(torch.export.export(Quantized(), (torch.randn(2, 10),)))
    found = {v.code: v.reason for v in built.report.nodes if not v.delegated}
    assert "dim is None" in found["one_dimension"] and "keepdim is True" in found["drops_dimension"]
