"""PercentileObserver: a range that leaves out a fixed share of the values at either end."""

from __future__ import annotations

import torch
from torchao.quantization.pt2e.observer import HistogramObserver

# Of a hundred: one value in ten thousand lies beyond, which is what others that clip by percentile start from.
PERCENTILE = 99.99


class PercentileObserver(HistogramObserver):  # type: ignore[misc,unused-ignore]
    """The values below `PERCENTILE` percent of all and above the rest, from torchao's histogram.

    The histogram observer minimises the error of the whole tensor instead and may clip far more.

    Example:
        >>> NeutronQuantizer(observer="percentile")
    """

    def _non_linear_param_search(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Called by torchao for the ends of the range."""
        share = torch.cumsum(self.histogram, 0) / self.histogram.sum()
        beyond = (100.0 - PERCENTILE) / 100.0
        first = int(torch.count_nonzero(share < beyond))
        last = min(int(torch.count_nonzero(share < 1.0 - beyond)), self.bins - 1)
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * first, self.min_val + width * (last + 1)
