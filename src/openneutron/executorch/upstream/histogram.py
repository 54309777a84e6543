"""Observers that find ranges in torchao's histogram by their own rules.

Replaces: `HistogramObserver._non_linear_param_search`, which torchao calls for the range with the least error. Its
search takes a hundred thousand steps of one quantile each, of which all but a few move nothing.
Saves: see `python benchmarks/upstream.py`; the wider the layers, the more.
Knows: torchao 0.18.
Otherwise: torchao's own search; `RangeObserver`, which has another result and so no other way, refuses to be made.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torchao.quantization.pt2e.observer import HistogramObserver

from openneutron.executorch.upstream.names import attribute
from openneutron.executorch.upstream.switch import Expected, register

_STEP = 1e-5  # torchao's granularity of quantiles
_MOST_STEPS = 100_002  # the two quantiles meet after 1 / _STEP steps, give or take the rounding of their sums
_SEARCH: Final = "_non_linear_param_search"
_OBSERVER: Final = "torchao.quantization.pt2e.observer"
search_histogram: Final = register(
    "search_histogram",
    "torchao",
    Expected(_OBSERVER, f"HistogramObserver.{_SEARCH}", ("self",)),
    Expected(_OBSERVER, "HistogramObserver._compute_quantization_error", ("self", "next_start_bin", "next_end_bin")),
)


def histogram_observer() -> type[HistogramObserver]:
    """torchao's histogram observer, or ours to the same ranges."""
    return QuickHistogramObserver if search_histogram.is_used() else HistogramObserver


class RangeObserver(HistogramObserver):  # type: ignore[misc,unused-ignore]
    """An observer whose subclasses say in `find_range` where the range of a histogram ends."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        attribute(HistogramObserver, _SEARCH, "torchao")
        super().__init__(*args, **kwargs)

    def find_range(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The smallest and the largest value of the range."""
        raise NotImplementedError

    def _non_linear_param_search(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.find_range()


class QuickHistogramObserver(HistogramObserver):  # type: ignore[misc,unused-ignore]
    """`HistogramObserver` whose search jumps from one move of a bound to the next.

    Example:
        >>> observer = QuickHistogramObserver()
        >>> observer(x)
        >>> scale, zero_point = observer.calculate_qparams()
    """

    def _non_linear_param_search(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Narrow the range by steps of a quantile from either side until the error of quantizing grows."""
        total = torch.sum(self.histogram).item()
        sums = torch.cumsum(self.histogram, dim=0).cpu().numpy()
        lower, upper = _quantiles()
        # Sums are float32, and torch compares them with a number as float32.
        lefts = np.searchsorted(sums, (lower[1:] * total).astype(np.float32), "left")
        rights = np.searchsorted(sums, (upper[1:] * total).astype(np.float32), "right") - 1
        falling = -rights
        i = j = start = 0
        end, least = self.bins - 1, float("inf")
        while lower[i] < upper[j]:
            left, right = min(max(int(lefts[i]), start), end), max(min(int(rights[j]), end), start)
            if left - start > end - right:
                next_start, next_end, i = left, end, i + 1
            elif right < end:
                next_start, next_end, j = start, right, j + 1
            else:
                # Neither bound moves, and only the upper quantile steps until one does.
                j = int(np.searchsorted(falling, -end, "right"))
                if start == end or j == rights.size:
                    break
                continue
            error = self._compute_quantization_error(next_start, next_end)
            if error > least:
                break
            least, start, end = error, next_start, next_end
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * start, self.min_val + width * (end + 1)


@cache
def _quantiles() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lower and the upper quantile after every number of steps, summed in torchao's order for the same bits."""
    steps = np.full(_MOST_STEPS, _STEP)
    return np.cumsum(np.append(0.0, steps)), np.cumsum(np.append(1.0, -steps))
