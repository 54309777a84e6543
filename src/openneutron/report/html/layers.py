"""Layered drawing of a directed graph (after Sugiyama): ranks by longest path, order by barycentres, long edges bend.

Weakness: barycentres with a fixed number of sweeps leave some crossings; networks are mostly chains with short skips,
where they find none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

BOX_WIDTH, BOX_HEIGHT = 208.0, 44.0  # room for an operator's name and one line of figures
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
    """Upper left corners of the boxes, SVG paths of the edges with their ends, and the size of it all."""

    boxes: tuple[tuple[float, float], ...]
    edges: tuple[tuple[int, int, str], ...]
    width: float
    height: float


def layout(inputs: Sequence[Sequence[int]]) -> Layout:
    """Place boxes of which box i reads `inputs[i]`, all of them before i.

    Example:
        >>> layout([(), (0,), (0, 1)]).height
        184.0
    """
    ranks: list[int] = []
    for read in inputs:
        ranks.append(1 + max((ranks[one] for one in read), default=-1))
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


def _chain(places: list[_Place], maker: int, reader: int) -> list[int]:
    """Connect two boxes, with a bend in every rank between them."""
    chain = [maker]
    for rank in range(places[maker].rank + 1, places[reader].rank):
        places.append(_Place(-1, rank))
        chain.append(len(places) - 1)
    chain.append(reader)
    for a, b in zip(chain, chain[1:], strict=False):
        places[a].below.append(b)
        places[b].above.append(a)
    return chain


def _rows(places: list[_Place]) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(1 + max((place.rank for place in places), default=-1))]
    for at, place in enumerate(places):
        rows[place.rank].append(at)
    for row in rows:
        _spread(places, row, {at: float(position) for position, at in enumerate(row)})
    return rows


def _sweep(places: list[_Place], rows: list[list[int]], *, downward: bool) -> None:
    """Put each rank's places under (or over) the mean of their neighbours, in that order."""
    for row in rows if downward else reversed(rows):
        wanted: dict[int, float] = {}
        for at in row:
            near = places[at].above if downward else places[at].below
            wanted[at] = sum(places[one].x for one in near) / len(near) if near else places[at].x
        row.sort(key=lambda at: wanted[at])
        _spread(places, row, wanted)


def _spread(places: list[_Place], row: list[int], wanted: dict[int, float]) -> None:
    """As near to the wanted centres as the widths allow: pushed to the right in order, then moved back as a whole."""
    edge = -float("inf")
    for at in row:
        place = places[at]
        place.x = max(wanted[at], edge + place.width / 2)
        edge = place.x + place.width / 2 + GAP_X
    back = sum(places[at].x - wanted[at] for at in row) / max(len(row), 1)
    # Boxes weigh more than bends: a chain stays straight while the edges beside it give way.
    boxes = [at for at in row if places[at].box >= 0]
    if boxes:
        back = sum(places[at].x - wanted[at] for at in boxes) / len(boxes)
    for at in row:
        places[at].x -= back


def _path(chain: list[_Place]) -> str:
    """A smooth line from the lower side of the first box to the upper side of the last."""
    points = []
    for place in chain:
        y = place.rank * (BOX_HEIGHT + GAP_Y)
        points += [(place.x, y), (place.x, y + BOX_HEIGHT)]
    points = points[1:-1]
    text = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):
        middle = (y0 + y1) / 2
        straight = f"L{x1:.1f} {y1:.1f}"
        text += straight if x0 == x1 else f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    return text
