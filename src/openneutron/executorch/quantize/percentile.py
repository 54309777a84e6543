"""PercentileObserver: a range that leaves out a fixed share of the values at either end."""

from __future__ import annotations

from typing import Any

import torch

from openneutron.executorch.quantize.choices import PERCENTILE
from openneutron.executorch.upstream.histogram import RangeObserver


class PercentileObserver(RangeObserver):
    """The values below `percentile` percent of all and above the rest, from torchao's histogram.

    The histogram observer minimises the error of the whole tensor instead and may clip far more.

    Example:
        >>> NeutronQuantizer(observer="percentile")
    """

    def __init__(self, *args: Any, percentile: float = PERCENTILE, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.percentile = percentile

    def find_range(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the two values outside which the given share of the numbers lies, at either end."""
        share = torch.cumsum(self.histogram, 0) / self.histogram.sum()
        beyond = (100.0 - self.percentile) / 100.0
        first = int(torch.count_nonzero(share < beyond))
        last = min(int(torch.count_nonzero(share < 1.0 - beyond)), self.bins - 1)
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * first, self.min_val + width * (last + 1)
