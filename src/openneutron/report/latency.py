"""Formatting of latencies: with an interval wherever one is known.

Example:
    >>> latency(0.96, 0.85, 1.08)
    '0.960 ms, 0.850 to 1.080'
"""

from __future__ import annotations


def latency(milliseconds: float, low: float, high: float) -> str:
    """Format an estimate with its interval; without one (`high` is 0) the estimate alone."""
    if not high:
        return f"{in_ms(milliseconds)} ms"
    return f"{in_ms(milliseconds)} ms, {in_ms(low)} to {in_ms(high)}"


def in_ms(milliseconds: float) -> str:
    """Format milliseconds: one decimal from 100 on, three below, and four for values so small that three leave one digit."""
    if 0 < milliseconds < 0.01:
        return f"{milliseconds:.4f}"
    return f"{milliseconds:.3f}" if milliseconds < 100 else f"{milliseconds:,.1f}"
