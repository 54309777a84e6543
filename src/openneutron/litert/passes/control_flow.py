"""Loops and branches: their operators, the limits of unrolling, and the error for one that is not unrolled.

Most models have none, so the modules that count and unroll them are imported only when needed.
"""

from __future__ import annotations

from openneutron.litert.graph import Graph

LOOP, BRANCH = "WHILE", "IF"
CONTROL = (LOOP, BRANCH)
# Four times as many as a second of audio has milliseconds; counting takes about 50 microseconds per trip.
MOST_TRIPS = 4096
# Operators of all trips of all loops that compute: an LSTM of 480 steps, which compiles in two seconds. Those that only compute
# positions are not counted: a body has about as many of them, and they are gone before anything is compiled.
MOST_OPERATORS = 1 << 13
MOST_DEPTH = 16  # nesting depth of graph calls; converters write one or two levels


class NotUnrolled(Exception):
    """A loop or branch is not unrolled; has the reason as one clause, and a hint."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


def has_control_flow(graph: Graph) -> bool:
    """Return whether the graph has loops or branches."""
    return any(op.code in CONTROL for op in graph.operators)
