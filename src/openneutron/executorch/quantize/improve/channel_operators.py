"""Operators that keep channels apart: clamps, flattening, averages over images.

Example:
    >>> clamp_end(node)
    6.0
"""

from __future__ import annotations

from typing import Final

from torch.fx import Node

from openneutron.executorch.fx import arguments, operator_name, shape_of

CLAMPS: Final = frozenset(
    f"aten.{name}.default" for name in ("relu6", "relu6_", "hardtanh", "hardtanh_", "clamp", "clamp_")
)
MEAN: Final = "aten.mean.dim"
_FLATTEN: Final = frozenset({"aten.flatten.using_ints", "aten.view.default", "aten.reshape.default"})


def clamp_end(node: Node) -> float | None:
    """Return the upper end of a clamp that begins at 0, None for any other."""
    given = arguments(node)
    if "relu6" in operator_name(node):
        return 6.0
    low, high = (given.get("min_val", given.get("min")), given.get("max_val", given.get("max")))
    return float(high) if low == 0 and isinstance(high, (int, float)) and high > 0 else None


def flattens(node: Node) -> bool:
    """Return whether an image becomes a row for each sample."""
    if operator_name(node) not in _FLATTEN:
        return False
    before, after = shape_of(node.args[0]), shape_of(node)  # type: ignore[arg-type]
    return len(before) > 2 and len(after) == 2 and before[0] == after[0]


def keeps_channels(node: Node) -> bool:
    """Return whether a mean is over all dimensions of an image but samples and channels."""
    rank, dims = len(shape_of(node.args[0])), arguments(node)["dim"]  # type: ignore[arg-type]
    return dims is not None and sorted(one % rank for one in dims) == list(range(2, rank))
