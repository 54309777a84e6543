"""HeadroomObserver: twice the range that was seen, for activations of 16 bits."""

from __future__ import annotations

import torch
from torchao.quantization.pt2e.observer import MinMaxObserver

# One bit: it costs 6 of the 90 dB that 16 bits have, while a value beyond the calibration data's would be cut off. States
# that a network carries from call to call grow beyond what a few samples show.
HEADROOM = 2.0


class HeadroomObserver(MinMaxObserver):  # type: ignore[misc,unused-ignore]
    """The smallest and the largest value, with room beyond them.

    Example:
        >>> HeadroomObserver.with_args(eps=2.0**-28)
    """

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Called by torchao for the scale."""
        scale, zero_point = super().calculate_qparams()
        return scale * HEADROOM, zero_point
