"""Memory map: addresses over time, the peak, and its causes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from openneutron.report.html.text import size, ticks
from openneutron.report.model import Buffer, Report

WIDTH, HEIGHT = 760.0, 330.0
LEFT, RIGHT, TOP, BOTTOM = 66.0, 16.0, 26.0, 40.0  # space for addresses, the mark of the peak, and the time axis
_LETTER = 6.6  # width of a letter; names wider than their buffer are only in the tooltip
_LINE = 15.0  # height of a label


@dataclass(frozen=True)
class Cause:
    """One buffer alive at the peak; `over` names the larger ones that it shares `shared` bytes with."""

    name: str
    region: str
    size: int
    shared: int = 0
    over: str = ""


@dataclass(frozen=True)
class Block:
    """A buffer on the map."""

    x: float
    y: float
    width: float
    height: float
    label: str
    kind: str
    tip: str
    at_peak: bool


@dataclass(frozen=True)
class MemoryMap:
    """The buffers of one graph; prefetch buffers are above `scratch_bytes`. `peak` is a position in the task list."""

    graph: int
    buffers: tuple[Buffer, ...]
    steps: int
    scratch_bytes: int
    top: int
    peak: int
    causes: tuple[Cause, ...]

    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top_line: float = TOP
    bottom: float = HEIGHT - BOTTOM

    def x(self, step: int) -> float:
        """Return the x of a position in the task list; long spans without changes are shortened."""
        return round(LEFT + self._drawn_until(step) / self._drawn_until(self.steps) * (WIDTH - LEFT - RIGHT), 1)

    @cached_property
    def _changes(self) -> list[tuple[int, float]]:
        """Positions where a live range starts or ends, with their drawn distance from the position before.

        The distance is the square root of the number of steps between, so that long spans do not fill the picture.
        """
        moments = sorted({0, self.steps, *(b.first for b in self.buffers), *(b.last + 1 for b in self.buffers)})
        return [(at, math.sqrt(at - before)) for before, at in zip([0, *moments], moments, strict=False)]

    def _drawn_until(self, step: int) -> float:
        return sum(distance for at, distance in self._changes if at <= step)

    def y(self, address: float) -> float:
        """Return the y of an address; address 0 is at the bottom."""
        return round(HEIGHT - BOTTOM - address / max(self.top, 1) * (HEIGHT - TOP - BOTTOM), 1)

    @property
    def peak_x(self) -> float:
        """The middle of the span that contains the peak."""
        moments = [at for at, _ in self._changes]
        begin = max(at for at in moments if at <= self.peak)
        end = min(at for at in moments if at > self.peak)
        return (self.x(begin) + self.x(end)) / 2

    @property
    def marks(self) -> list[tuple[float, str]]:
        """Labelled addresses."""
        return [(self.y(1024 * kib), size(1024 * kib)) for kib in ticks(0, self.top / 1024, 4)]

    @property
    def blocks(self) -> list[Block]:
        """The buffers as rectangles."""
        return [self._block(buffer) for buffer in self.buffers]

    def _block(self, b: Buffer) -> Block:
        start = b.offset + (self.scratch_bytes if b.region == "prefetch" else 0)
        x, y = self.x(b.first), self.y(start + b.size)
        width, height = round(self.x(b.last + 1) - x, 1), round(self.y(start) - y, 1)
        fits = height >= _LINE and len(b.layer) * _LETTER <= width - 8
        second = f"{b.name}\n" if b.module else ""
        tip = (
            f"{b.layer}\n{second}{size(b.size)} of {b.region} at {b.offset:,} … {b.offset + b.size:,}\n"
            f"tasks {b.first} to {b.last}"
        )
        at_peak = b.first <= self.peak <= b.last
        return Block(x, y, width, height, b.layer if fits else "", b.region, tip, at_peak)


def memory_maps(report: Report) -> list[MemoryMap]:
    """Return one map per graph with buffers, the largest first."""
    graphs = dict.fromkeys(buffer.graph for buffer in report.buffers)
    maps = [_map(graph, [b for b in report.buffers if b.graph == graph]) for graph in graphs]
    return sorted(maps, key=lambda one: -one.top)


def _map(graph: int, buffers: Sequence[Buffer]) -> MemoryMap:
    scratch = _end([b for b in buffers if b.region != "prefetch"])
    prefetch = _end([b for b in buffers if b.region == "prefetch"])
    steps = 1 + max(b.last for b in buffers)
    alive = [[b for b in buffers if b.first <= step <= b.last] for step in range(steps)]
    # The steps with the highest address in use, and of these the one with most live bytes.
    peak = max(range(steps), key=lambda step: (_ends(alive[step]), sum(b.size for b in alive[step])))
    return MemoryMap(graph, tuple(buffers), steps, scratch, scratch + prefetch, peak, tuple(_causes(alive[peak])))


def _causes(alive: Sequence[Buffer]) -> list[Cause]:
    """Return the live buffers at the peak, the largest first, each with the earlier ones that it overlaps."""
    found: list[Cause] = []
    ordered = sorted(alive, key=lambda buffer: -buffer.size)
    for at, b in enumerate(ordered):
        over = [(one, _common(b, one)) for one in ordered[:at] if one.region == b.region and _common(b, one) > 0]
        names = ", ".join(one.layer for one, _ in over)
        found.append(Cause(b.layer, b.region, b.size, max((size for _, size in over), default=0), names))
    return found


def _common(a: Buffer, b: Buffer) -> int:
    """Return the number of bytes that two buffers of a region share."""
    return min(a.offset + a.size, b.offset + b.size) - max(a.offset, b.offset)


def _end(buffers: Sequence[Buffer]) -> int:
    return max((b.offset + b.size for b in buffers), default=0)


def _ends(buffers: Sequence[Buffer]) -> int:
    """Return the highest end address of these buffers in scratch plus that in prefetch."""
    regions = {b.region for b in buffers}
    return sum(_end([b for b in buffers if b.region == region]) for region in regions)
