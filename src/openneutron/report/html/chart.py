"""Chart geometry: points, ticks and lines on a canvas of fixed size, which the template draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

WIDTH, HEIGHT = 560.0, 330.0
LEFT, RIGHT, TOP, BOTTOM = 66.0, 22.0, 18.0, 48.0  # space for the labels of the axes

Scale = Callable[[float], float]


@dataclass(frozen=True)
class Mark:
    """A point with its tooltip; `kind` is its CSS class."""

    x: float
    y: float
    radius: float
    kind: str
    tip: str


@dataclass(frozen=True)
class Tick:
    """A labelled position on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Line:
    """An SVG path with its CSS class, and a label rotated by `angle` degrees."""

    path: str
    kind: str
    label: str = ""
    x: float = 0.0
    y: float = 0.0
    angle: float = 0.0


@dataclass(frozen=True)
class Chart:
    """Points over two axes, with lines behind them."""

    name: str
    x_title: str
    y_title: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    lines: tuple[Line, ...] = ()
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    bottom: float = HEIGHT - BOTTOM


def across(low: float, high: float, *, logarithmic: bool = False) -> Scale:
    """Return the scale value → x.

    Example:
        >>> across(0, 10)(0)
        66.0
    """
    return lambda value: round(LEFT + _share(value, low, high, logarithmic) * (WIDTH - LEFT - RIGHT), 1)


def upward(low: float, high: float, *, logarithmic: bool = False) -> Scale:
    """Return the scale value → y, larger values higher up."""
    return lambda value: round(HEIGHT - BOTTOM - _share(value, low, high, logarithmic) * (HEIGHT - TOP - BOTTOM), 1)


def polyline(points: list[tuple[float, float]]) -> str:
    """Return an SVG path through the points.

    Example:
        >>> polyline([(0, 0), (1, 2)])
        'M0 0L1 2'
    """
    return "".join(f"{'L' if at else 'M'}{x} {y}" for at, (x, y) in enumerate(points))


def _share(value: float, low: float, high: float, logarithmic: bool) -> float:
    return math.log(value / low) / math.log(high / low) if logarithmic else (value - low) / (high - low)
