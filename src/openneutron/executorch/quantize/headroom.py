"""HeadroomObserver: an observer for 16-bit activations that doubles the observed range."""

from __future__ import annotations

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
