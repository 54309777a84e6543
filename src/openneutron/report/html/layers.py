"""Layered drawing of a directed graph (after Sugiyama): ranks by longest path, order by barycentres, bends in long edges.

Weakness: barycentres with a fixed number of sweeps leave some crossings; for networks, mostly chains with short skips, they
find none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

BOX_WIDTH, BOX_HEIGHT = 208.0, 44.0  # for an operator's name and one line of figures
GAP_X, GAP_Y = 28.0, 26.0
BEND_WIDTH = 6.0  # a long edge passing a rank beside its boxes
SWEEPS = 6  # more change nothing on the zoo's models


@dataclass
class _Place:
    """A box, or the point where a long edge passes a rank."""

    box: int  # -1: a bend
    rank: int
    above: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)
    x: float = 0.0

    @property
    def width(self) -> float:
        return BOX_WIDTH if self.box >= 0 else BEND_WIDTH


@dataclass(frozen=True)
class Layout:
    """Upper left corners of the boxes, SVG paths of the edges with their ends, and the total size."""

    boxes: tuple[tuple[float, float], ...]
    edges: tuple[tuple[int, int, str], ...]
    width: float
    height: float


def layout(inputs: Sequence[Sequence[int]]) -> Layout:
    """Place boxes, of which box i reads the earlier boxes `inputs[i]`.

    Example:
        >>> layout([(), (0,), (0, 1)]).height
        184.0
    """
    ranks = _ranks(inputs)
    places = [_Place(box, rank) for box, rank in enumerate(ranks)]
    chains = [_chain(places, maker, box) for box, read in enumerate(inputs) for maker in read]
    rows = _rows(places)
    for sweep in range(SWEEPS):
        _sweep(places, rows, downward=sweep % 2 == 0)
    left = min((place.x - place.width / 2 for place in places), default=0.0)
    for place in places:
        place.x -= left
    width = max((place.x + place.width / 2 for place in places), default=0.0)
    height = len(rows) * (BOX_HEIGHT + GAP_Y) - (GAP_Y if rows else 0.0)
    corners = tuple((p.x - BOX_WIDTH / 2, p.rank * (BOX_HEIGHT + GAP_Y)) for p in places[: len(inputs)])
    edges = tuple((chain[0], chain[-1], _path([places[at] for at in chain])) for chain in chains)
    return Layout(corners, edges, width, height)


def _ranks(inputs: Sequence[Sequence[int]]) -> list[int]:
    """Return the longest path from the top; a box without inputs is placed right above its first reader."""
    ranks: list[int] = []
    readers: list[list[int]] = [[] for _ in inputs]
    for box, read in enumerate(inputs):
        ranks.append(1 + max((ranks[one] for one in read), default=-1))
        for one in read:
            readers[one].append(box)
    for box, read in enumerate(inputs):
        if not read and readers[box]:
            ranks[box] = min(ranks[one] for one in readers[box]) - 1
    return ranks


def _chain(places: list[_Place], maker: int, reader: int) -> list[int]:
    """Connect two boxes, with a bend in every rank between them."""
    chain = [maker]
    for rank in range(places[maker].rank + 1, places[reader].rank):
        places.append(_Place(-1, rank))
        chain.append(len(places) - 1)
    chain.append(reader)
    for a, b in pairwise(chain):
        places[a].below.append(b)
        places[b].above.append(a)
    return chain


def _rows(places: list[_Place]) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(1 + max((place.rank for place in places), default=-1))]
    for at, place in enumerate(places):
        rows[place.rank].append(at)
    for row in rows:
        _place_row(places, row, {at: float(position) for position, at in enumerate(row)})
    return rows


def _sweep(places: list[_Place], rows: list[list[int]], *, downward: bool) -> None:
    """Order each rank by the mean position of its neighbours above (or below), and move it there."""
    for row in rows if downward else reversed(rows):
        wanted: dict[int, float] = {}
        for at in row:
            near = places[at].above if downward else places[at].below
            # Boxes before bends: a chain stays straight, and the edges beside it are moved.
            near = [one for one in near if places[one].box >= 0] or near
            wanted[at] = sum(places[one].x for one in near) / len(near) if near else places[at].x
        row.sort(key=lambda at: wanted[at])
        _place_row(places, row, wanted)


def _place_row(places: list[_Place], row: list[int], wanted: dict[int, float]) -> None:
    """Move the middle box to its wanted position, the others as near to theirs as the widths on both sides allow."""
    boxes = [position for position, at in enumerate(row) if places[at].box >= 0]
    anchor = boxes[len(boxes) // 2] if boxes else 0
    if row:
        places[row[anchor]].x = wanted[row[anchor]]
    for at, before in zip(row[anchor + 1 :], row[anchor:], strict=False):
        places[at].x = max(wanted[at], places[before].x + _apart(places[at], places[before]))
    for at, after in zip(reversed(row[:anchor]), reversed(row[1 : anchor + 1]), strict=True):
        places[at].x = min(wanted[at], places[after].x - _apart(places[at], places[after]))


def _apart(a: _Place, b: _Place) -> float:
    return (a.width + b.width) / 2 + GAP_X


def _path(chain: list[_Place]) -> str:
    """Return a smooth line from the lower side of the first box to the upper side of the last."""
    points = []
    for place in chain:
        y = place.rank * (BOX_HEIGHT + GAP_Y)
        points += [(place.x, y), (place.x, y + BOX_HEIGHT)]
    points = points[1:-1]
    text = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        straight = f"L{x1:.1f} {y1:.1f}"
        text += straight if x0 == x1 else f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    return text
