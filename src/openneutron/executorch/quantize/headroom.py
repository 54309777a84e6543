"""Observers of another range than the values have: headroom for 16-bit activations, and the lowest part for a table."""

from __future__ import annotations

from typing import Any

import torch
from torchao.quantization.pt2e.observer import MinMaxObserver

# One extra bit costs 6 of the 90 dB that 16 bits have, but keeps values beyond those of the calibration data. States
# that a network carries from call to call grow beyond what a few samples show.
HEADROOM = 2.0


class HeadroomObserver(MinMaxObserver):  # type: ignore[misc,unused-ignore]
    """Records the smallest and the largest value and adds headroom.

    Example:
        >>> HeadroomObserver.with_args(eps=2.0**-28)
    """

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scale and zero point; called by torchao."""
        scale, zero_point = super().calculate_qparams()
        return scale * HEADROOM, zero_point


class PartObserver(MinMaxObserver):  # type: ignore[misc,unused-ignore]
    """Records the largest value, and has a scale for a part of the range from 0 to it.

    Example:
        >>> PartObserver.with_args(part=1 / 32)
    """

    def __init__(self, *args: Any, part: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.part = part

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scale and zero point; called by torchao."""
        largest = self.max_val.clamp(min=0.0) * self.part
        scale = torch.clamp(largest / (self.quant_max - self.quant_min), min=self.eps)
        return scale, torch.full_like(scale, self.quant_min, dtype=torch.int64)
