"""LeastErrorObserver: the range whose steps are nearest to the values seen."""

from __future__ import annotations

from typing import Any, Final

import torch

from openneutron.executorch.upstream.histogram import RangeObserver

# Shares of either end of the range that are tried. Those above 1 put a value that occurs often on a step.
_LOW: Final = (1.0, 1.04, 0.96, 0.92, 0.84, 0.76, 0.68, 0.6, 0.5, 0.4, 0.3)
_HIGH: Final = (1.0, 1.02, 1.04, 1.06, *(1.0 - at / 50 for at in range(1, 36)))


class LeastErrorObserver(RangeObserver):
    """Rounds the values of torchao's histogram to the steps of many ranges and takes the one with the least error.

    Unlike the histogram observer it knows where the steps lie: a bound that a clamp gives to most of the values is exact.

    Example:
        >>> NeutronQuantizer(observer="mse")
    """

    def find_range(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the ends of the range with the least error."""
        width = (self.max_val - self.min_val).double() / self.bins
        counts = self.histogram.double()
        values = self.min_val.double() + width * (torch.arange(self.bins, dtype=torch.float64) + 0.5)
        values[0], values[-1] = self.min_val, self.max_val  # many values lie at the end of a clamp
        values, counts = values[counts > 0], counts[counts > 0]
        low, high = self.min_val.double().clamp(max=0.0), self.max_val.double().clamp(min=0.0)
        best, least = (low, high), None
        for share in _LOW if bool(low < 0) else (1.0,):
            for other in _HIGH if bool(high > 0) else (1.0,):
                error = self._error(values, counts, low * share, high * other)
                if least is None or error < least:
                    best, least = (low * share, high * other), error
        return best[0].to(self.min_val.dtype), best[1].to(self.max_val.dtype)

    def _error(self, values: torch.Tensor, counts: torch.Tensor, low: Any, high: Any) -> float:
        levels = self.quant_max - self.quant_min
        scale = ((high - low) / levels).clamp(min=torch.finfo(torch.float32).tiny)
        zero = (self.quant_min - low / scale).round()
        steps = (values / scale).round() + zero
        return float((((steps.clamp(self.quant_min, self.quant_max) - zero) * scale - values).square() * counts).sum())
