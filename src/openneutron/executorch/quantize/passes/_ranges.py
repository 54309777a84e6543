"""Value ranges on calibration samples, over which a recognised form must be equivalent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.fx import GraphModule, Node

_SAMPLES = "openneutron_samples"  # metadata key of the samples
_RANGES = "openneutron_ranges"


def show_samples(model: GraphModule, samples: Sequence[Any]) -> None:
    """Make samples available to passes; nothing runs until a pass asks for a range."""
    model.meta[_SAMPLES] = tuple(samples)
    model.meta.pop(_RANGES, None)


def forget_samples(model: GraphModule) -> None:
    """Remove the samples that `show_samples` stored."""
    model.meta.pop(_SAMPLES, None)
    model.meta.pop(_RANGES, None)


def seen_range(model: GraphModule, node: Node) -> tuple[float, float] | None:
    """Return the smallest and the largest value of a node on the samples; None without samples or finite values.

    Example:
        >>> seen_range(model, clamp.args[0])
        (-3.2, 4.1)
    """
    if not model.meta.get(_SAMPLES):
        return None
    ranges = model.meta.get(_RANGES)
    if ranges is None or node not in ranges:
        from openneutron.executorch.quantize.check.values import seen_ranges

        try:
            ranges = seen_ranges(model, model.meta[_SAMPLES])
        except Exception:
            ranges = {}
        model.meta[_RANGES] = ranges
    found: tuple[float, float] | None = ranges.get(node)
    return found
