"""Merge the stock answers of a PyTorch program's partitions and its CPU part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from openneutron.board.arena import method_bytes
from openneutron.board.interval import interval
from openneutron.report.model import CpuTime, Stock, Totals, Whole

_LISTS = ("left", "notes", "cpu")
_TEXTS = ("sdk",)
_LARGEST = ("scratch_bytes", "prefetch_bytes")


def merge_stocks(stocks: Sequence[Stock], whole: Whole) -> Stock:
    """Add up the stock answers; `whole` has the CPU's share around the partitions and ExecuTorch's planned memory.

    Of scratch and prefetch the largest counts: NXP's delegate takes them, and its transposed copies, from ExecuTorch's
    temporary allocator, which is emptied after each call.

    Example:
        >>> merge_stocks([partition.report.stock for partition in partitions], whole).arena_bytes
    """
    if not any(stock.operators_total for stock in stocks):
        return Stock()
    numbers = [field.name for field in fields(Stock) if field.name not in (*_LISTS, *_TEXTS, *_LARGEST)]
    summed = Stock(
        **{name: sum(getattr(stock, name) for stock in stocks) for name in numbers},
        **{name: max(getattr(stock, name) for stock in stocks) for name in _LARGEST},
    )
    copies = [*whole.graph_copy_bytes, *[0] * len(stocks)]
    temporary = max(stock.scratch_bytes + copies[at] for at, stock in enumerate(stocks))
    around = whole.cpu_milliseconds + whole.copy_milliseconds
    low, high = interval(around, unexercised=1.0)
    return replace(
        summed,
        sdk=next(stock.sdk for stock in stocks if stock.operators_total),
        arena_bytes=whole.arena_bytes + temporary,
        planned_bytes=whole.arena_bytes,
        method_bytes=method_bytes(whole.arena_bytes),
        milliseconds=summed.milliseconds + around,
        milliseconds_low=summed.milliseconds_low + low,
        milliseconds_high=summed.milliseconds_high + high,
        cpu_milliseconds=summed.cpu_milliseconds + around,
        left=tuple(dict.fromkeys(text for stock in stocks for text in stock.left)),
        notes=tuple(dict.fromkeys(text for stock in stocks for text in stock.notes)),
        cpu=_merge_cpu(stocks, whole),
    )


def _merge_cpu(stocks: Sequence[Stock], whole: Whole) -> tuple[CpuTime, ...]:
    """Return the CPU's parts around the partitions, then those of each; graphs are numbered through."""
    found = [one for one in whole.cpu if one.engine != "call"]
    graphs = 0
    for one in (part for stock in stocks for part in stock.cpu):
        if one.engine == "call":
            one = replace(one, name=f"NeutronGraph {graphs}")
            graphs += 1
        found.append(one)
    return tuple(found)


def with_interval(whole: Whole, totals: Totals) -> Whole:
    """Return the whole program's time with an interval: the NPU's own, and a wide one around the CPU's part."""
    low, high = interval(whole.milliseconds - whole.npu_milliseconds, unexercised=1.0)
    return replace(
        whole, milliseconds_low=totals.milliseconds_low + low, milliseconds_high=totals.milliseconds_high + high
    )
