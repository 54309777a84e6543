"""Formatting of figures, and ticks for axes."""

from __future__ import annotations

import math

# Ticks are these multiples of a power of ten.
_STEPS = (1, 2, 5, 10)


def size(count: float) -> str:
    """Format bytes with a binary unit, with at most three digits before the point.

    Example:
        >>> size(12298)
        '12.0 KiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"


def short(count: float) -> str:
    """Format a count with a decimal unit.

    Example:
        >>> short(278603)
        '279 k'
    """
    for unit in ("", " k", " M", " G"):
        if abs(count) < 1000 or unit == " G":
            break
        count /= 1000
    # Three significant digits distinguish neighbours without suggesting more accuracy.
    return f"{count:.3g}{unit}" if abs(count) < 1000 else f"{count:,.0f}{unit}"


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return about `count` round numbers from `low` to `high`.

    Example:
        >>> ticks(0.0, 9.0)
        [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    if high <= low:
        return [low]
    raw = (high - low) / count
    scale = 10.0 ** math.floor(math.log10(raw))
    step = next(s * scale for s in _STEPS if s * scale >= raw)
    return [step * at for at in range(math.ceil(low / step), math.floor(high / step) + 1)]


def doublings(low: float, high: float) -> list[float]:
    """Return at most six powers of two from `low` to `high`, evenly spaced on a logarithmic axis.

    Example:
        >>> doublings(900, 5000)
        [1024.0, 2048.0, 4096.0]
    """
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    return [2.0**power for power in range(first, last + 1, 1 + max(last - first, 0) // 6)]


def decades(low: float, high: float) -> list[float]:
    """Return the powers of ten from `low` to `high`, inclusive.

    Example:
        >>> decades(0.1, 100)
        [0.1, 1.0, 10.0, 100.0]
    """
    return [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
