"""torchao's histogram observer, to the same ranges in a fraction of the time.

Its search for the range with the least error looks at cumulative sums one tensor element after the other, which took three
quarters of quantizing a network of wide layers.
"""

from __future__ import annotations

import numpy as np
import torch
from torchao.quantization.pt2e.observer import HistogramObserver

_STEP = 1e-5  # torchao's granularity of quantiles


class QuickHistogramObserver(HistogramObserver):  # type: ignore[misc,unused-ignore]
    """`HistogramObserver` whose search reads plain numbers.

    Example:
        >>> observer = QuickHistogramObserver()
        >>> observer(x)
        >>> scale, zero_point = observer.calculate_qparams()
    """

    def _non_linear_param_search(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The narrowest range, by steps of a quantile from either side, before the error of quantizing grows."""
        total = torch.sum(self.histogram).item()
        sums = torch.cumsum(self.histogram, dim=0).tolist()
        alpha, beta, start, end, least = 0.0, 1.0, 0, self.bins - 1, float("inf")
        left, right = start, end
        while alpha < beta:
            next_alpha, next_beta = alpha + _STEP, beta - _STEP
            # Sums are float32, and torch compares them with a number as float32. Both bounds only move inwards.
            low, high = float(np.float32(next_alpha * total)), float(np.float32(next_beta * total))
            left, right = min(max(left, start), end), max(min(right, end), start)
            while left < end and sums[left] < low:
                left += 1
            while right > start and sums[right] > high:
                right -= 1
            next_start, next_end = start, end
            if left - start > end - right:
                next_start, alpha = left, next_alpha
            else:
                next_end, beta = right, next_beta
            if next_start == start and next_end == end:
                continue
            error = self._compute_quantization_error(next_start, next_end)
            if error > least:
                break
            least, start, end = error, next_start, next_end
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * start, self.min_val + width * (end + 1)
