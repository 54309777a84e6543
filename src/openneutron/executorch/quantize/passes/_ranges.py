"""Value ranges on calibration samples, over which a recognised form must be equivalent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch.fx import GraphModule, Node

if TYPE_CHECKING:
    from openneutron.executorch.quantize.check.values import Seen

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
    found = _read_ranges(model, node)
    return found.ranges.get(node) if found is not None else None


def seen_lowest(model: GraphModule, node: Node) -> float | None:
    """Return the smallest value of a node on the samples, minus infinity too; None without samples."""
    found = _read_ranges(model, node)
    if found is None:
        return None
    known = found.ranges.get(node)
    return -math.inf if node in found.endless else known[0] if known is not None else None


def _read_ranges(model: GraphModule, node: Node) -> Seen | None:
    if not model.meta.get(_SAMPLES):
        return None
    from openneutron.executorch.quantize.check.values import Seen, seen_ranges

    found: Seen | None = model.meta.get(_RANGES)
    if found is None or (node not in found.ranges and node not in found.endless):
        try:
            found = seen_ranges(model, model.meta[_SAMPLES])
        except Exception:
            found = Seen()
        model.meta[_RANGES] = found
    return found
