"""Allocates scratch, prefetch and TCM buffers: gives each an offset so that buffers alive at the same time do not clash.

Several greedy orders are tried, each placing a buffer at the lowest offset that is free during its live range; then hill
climbing changes the best order. A segment's dying input and its output may share bytes as far as `Overlap` allows (diagonal
placement, as in DMO and vMCU). The largest sum of live bytes, minus the bytes that pairs may share, is a lower bound: reaching
it proves the result optimal and ends the search. With `--optimize max` CP-SAT improves the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from openneutron.compiler.l2 import Buffer, Overlap, TaskList
from openneutron.microcode.table import Region


class Effort(Enum):
    """How hard to try: greedy orders only, then hill climbing, then the solver on top."""

    GREEDY = 0
    CLIMB = 1
    EXACT = 2


CLIMBS = 60  # steps of hill climbing; more found nothing on the reference models
CLIMB_LIMIT = 400  # buffers; beyond this a step costs more than it finds

_ORDERS: tuple[Callable[[Buffer], tuple[int, ...]], ...] = (
    lambda b: (-b.size, b.first, b.last),
    lambda b: (-b.size * (b.last - b.first + 1), -b.size, b.first),
    lambda b: (b.first, -b.size, b.last),
    lambda b: (-b.last, -b.size, b.first),
    lambda b: (-(b.last - b.first), -b.size, b.first),
)


def lower_bound(buffers: Sequence[Buffer], overlaps: Iterable[Overlap] = ()) -> int:
    """Return the largest sum of live bytes at one position, minus the bytes that pairs may share: no placement is lower.

    A union is at least the sum of its parts less the intersections of all pairs of them.
    """
    events: dict[int, int] = {}

    def count(first: int, last: int, size: int) -> None:
        events[first] = events.get(first, 0) + size
        events[last + 1] = events.get(last + 1, 0) - size

    for b in buffers:
        count(b.first, b.last, b.size)
    for o in overlaps:
        dying, born = buffers[o.dying], buffers[o.born]
        shared = min(dying.size, born.size if o.exact else max(born.size - o.distance, 0))
        first, last = max(dying.first, born.first), min(dying.last, born.last)
        if first <= last:
            count(first, last, -shared)
    most = alive = 0
    for position in sorted(events):
        alive += events[position]
        most = max(most, alive)
    return most


class _Pairs:
    """Overlaps, found by either of their two buffers."""

    def __init__(self, overlaps: Sequence[Overlap], index: dict[int, int]) -> None:
        self.each: list[Overlap] = []
        self.of: dict[tuple[int, int], Overlap] = {}
        self.partners: dict[int, dict[int, Overlap]] = {}
        for o in overlaps:
            if o.dying in index and o.born in index:
                dying, born = index[o.dying], index[o.born]
                pair = o._replace(dying=dying, born=born)
                self.each.append(pair)
                self.of[dying, born] = self.of[born, dying] = pair
                self.partners.setdefault(dying, {})[born] = self.partners.setdefault(born, {})[dying] = pair

    @staticmethod
    def forbidden_offsets(pair: Overlap, placing: int, size: int, low: int, high: int) -> tuple[int, int]:
        """Return two bounds: offsets strictly between them clash with the other buffer of the pair, at [low, high)."""
        if placing == pair.born:
            return (low - size, high + pair.distance - size) if pair.upward else (low - pair.distance, high)
        return (high - pair.distance - size, high) if pair.upward else (low - size, low + pair.distance)


def _neighbours(buffers: Sequence[Buffer]) -> list[list[int]]:
    """Return for each buffer those alive at the same time, by one sweep over their starts."""
    found: list[list[int]] = [[] for _ in buffers]
    alive: list[int] = []
    for at in sorted(range(len(buffers)), key=lambda i: (buffers[i].first, i)):
        alive = [other for other in alive if buffers[other].last >= buffers[at].first]
        for other in alive:
            found[other].append(at)
            found[at].append(other)
        alive.append(at)
    return found


def _place(
    buffers: Sequence[Buffer], order: Sequence[int], pairs: _Pairs, neighbours: list[list[int]]
) -> tuple[int, list[int]]:
    """Place each buffer in turn at the lowest free offset; returns (height, offsets)."""
    offsets = [-1] * len(buffers)
    sizes = [b.size for b in buffers]
    top = 0
    for at in order:
        size = sizes[at]
        placed = [other for other in neighbours[at] if offsets[other] >= 0]
        allowed: list[int] = []
        partners = pairs.partners.get(at)
        if partners is None:
            blocked = [(offsets[other] - size, offsets[other] + sizes[other]) for other in placed]
        else:
            blocked = []
            for other in placed:
                low, high = offsets[other], offsets[other] + sizes[other]
                pair = partners.get(other)
                blocked.append(
                    (low - size, high) if pair is None else pairs.forbidden_offsets(pair, at, size, low, high)
                )
                if pair is not None and pair.exact and blocked[-1][0] < low < blocked[-1][1]:
                    allowed.append(low)
        blocked.sort()
        offset = _lowest(blocked)
        for candidate in sorted(allowed) if allowed else ():
            clear = sum(low < candidate < high for low, high in blocked) == 1  # only the partner itself
            if candidate < offset and clear:
                offset = candidate
                break
        offsets[at] = offset
        if offset + size > top:
            top = offset + size
    return top, offsets


def _climb(
    buffers: Sequence[Buffer],
    order: list[int],
    pairs: _Pairs,
    neighbours: list[list[int]],
    start: tuple[int, list[int]],
    least: int,
) -> tuple[int, list[int]]:
    """Improve the order by hill climbing: buffers at the top, or below one, are placed earlier (as Vela does).

    It stops after a fixed number of steps, or at the `least` height. Its own random generator makes results reproducible.
    """
    if start[0] <= least or len(buffers) > CLIMB_LIMIT:
        return start
    import random

    rng = random.Random(1)  # the same choices every time, no secret # nosec B311
    best, current = start, start
    for _ in range(CLIMBS):
        highest = [at for at, b in enumerate(buffers) if current[1][at] + b.size == current[0]]
        moved = rng.choice(highest)
        beneath = [n for n in neighbours[moved] if current[1][n] < current[1][moved]]
        lifted = [moved, *rng.sample(beneath, min(len(beneath), rng.randint(0, 2)))]
        rest = [at for at in order if at not in lifted]
        to = rng.randint(0, max(min(order.index(at) for at in lifted) - 1, 0))
        attempt_order = rest[:to] + lifted + rest[to:]
        attempt = _place(buffers, attempt_order, pairs, neighbours)
        if attempt[0] <= current[0]:
            current, order = attempt, attempt_order
        if current[0] < best[0]:
            best = current
            if best[0] <= least:
                break
    return best


def _lowest(blocked: list[tuple[int, int]]) -> int:
    """Smallest offset from 0 on that lies in none of the open intervals, which are sorted by their lower ends."""
    offset = 0
    for low, high in blocked:
        if low >= offset:
            break
        if high > offset:
            offset = high
    return offset


def _region(
    buffers: list[Buffer], overlaps: Sequence[Overlap], index: dict[int, int], effort: Effort
) -> tuple[int, int]:
    """Place one region's buffers; (height, lower bound without overlaps)."""
    bound = lower_bound(buffers)
    neighbours = _neighbours(buffers)
    best: tuple[int, list[int]] | None = None
    for pairs in (_Pairs(overlaps, index), _Pairs((), {})):
        if best is not None and best[0] <= bound:
            break  # nothing placed without overlaps can be smaller
        least = lower_bound(buffers, pairs.each)
        attempts: list[tuple[tuple[int, list[int]], list[int]]] = []
        for key in _ORDERS:
            order = sorted(range(len(buffers)), key=lambda at, key=key: (*key(buffers[at]), at))  # type: ignore[misc]
            attempts.append((_place(buffers, order, pairs, neighbours), order))
            if attempts[-1][0][0] <= least:
                break
        found, order = min(attempts, key=lambda attempt: attempt[0][0])
        if effort is not Effort.GREEDY:
            found = _climb(buffers, order, pairs, neighbours, found, least)
        best = found if best is None or found[0] < best[0] else best
    assert best is not None
    if effort is Effort.EXACT:
        from openneutron.compiler.plan.solve import solve

        best = solve(buffers, _Pairs(overlaps, index).of, best[1], best[0])
    for b, offset in zip(buffers, best[1], strict=True):
        b.offset = offset
    return best[0], bound


def allocate(tasks: TaskList, effort: Effort = Effort.CLIMB) -> TaskList:
    """Set the offsets of scratch and prefetch buffers and the totals of the task list."""
    for region in (Region.SCRATCH, Region.PREFETCH, Region.TCM):
        chosen = [at for at, b in enumerate(tasks.buffers) if b.region is region and b.first >= 0]
        index = {at: i for i, at in enumerate(chosen)}
        if not chosen:
            continue
        height, bound = _region([tasks.buffers[at] for at in chosen], tasks.overlaps, index, effort)
        if region is Region.PREFETCH:
            tasks.prefetch_bytes = height
        elif region is Region.TCM:
            tasks.tcm_bytes = height
        else:
            tasks.scratch_bytes = height
        if region is not Region.PREFETCH:
            tasks.lower_bound = max(tasks.lower_bound, bound)
    if effort is Effort.EXACT:
        from openneutron.compiler.plan.solve import solver_version

        tasks.solver_version = solver_version()
    return tasks
