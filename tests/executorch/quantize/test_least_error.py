"""The range with the least error: exact for a value that a clamp gives to most, and never worse than the whole range."""

from __future__ import annotations

import pytest
import torch

from openneutron.executorch.quantize.least_error import LeastErrorObserver


def parameters(x: torch.Tensor) -> tuple[float, int]:
    observer = LeastErrorObserver(dtype=torch.int8, quant_min=-128, quant_max=127, qscheme=torch.per_tensor_affine)
    observer(x)
    scale, zero = observer.calculate_qparams()
    return float(scale), int(zero)


def rounded(x: torch.Tensor, scale: float, zero: int) -> torch.Tensor:
    return torch.fake_quantize_per_tensor_affine(x, scale, zero, -128, 127)


def noise(x: torch.Tensor, scale: float, zero: int) -> float:
    return float((rounded(x, scale, zero) - x).square().sum())


def whole_range(x: torch.Tensor) -> tuple[float, int]:
    scale = float((x.max().clamp(min=0) - x.min().clamp(max=0)) / 255)
    return scale, round(-128 - min(float(x.min()), 0.0) / scale)


def test_a_bound_that_most_values_have_lies_on_a_step() -> None:
    x = torch.rand(4000, generator=torch.Generator().manual_seed(0)).mul(45).sub(40).clamp(min=-0.41)
    bound = x.min().reshape(1)
    assert float((rounded(bound, *whole_range(x)) - bound).abs()) > 0.004
    assert float((rounded(bound, *parameters(x)) - bound).abs()) < 0.001
    assert noise(x, *parameters(x)) < 0.2 * noise(x, *whole_range(x))


@pytest.mark.parametrize("kind", ["normal", "skewed", "outlier", "positive", "negative", "constant"])
def test_the_error_is_at_most_that_of_the_whole_range(kind: str) -> None:
    x = torch.randn(3000, generator=torch.Generator().manual_seed(1))
    x = {
        "normal": x, "skewed": x.exp(), "outlier": torch.cat([x / 10, torch.tensor([40.0])]), "positive": x.abs() + 3,
        "negative": -x.abs(), "constant": torch.full((9,), 2.5),
    }[kind]  # fmt: skip
    assert noise(x, *parameters(x)) <= 1.02 * noise(x, *whole_range(x)) + 1e-6
