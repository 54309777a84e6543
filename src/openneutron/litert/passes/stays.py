"""Loops and branches: which operators they are, how large they may be, and why one stays what it is, and runs on the CPU.

Most models have none, so what unrolls and counts them is imported where one is met.
"""

from __future__ import annotations

from openneutron.litert.graph import Graph

LOOP, BRANCH = "WHILE", "IF"
CONTROL = (LOOP, BRANCH)
# A second of audio in steps of a millisecond is four times less; each trip of the count costs some 50 microseconds.
MOST_TRIPS = 4096
# Operators of all trips of all loops that compute: an LSTM of 480 steps, which compiles in two seconds. Those that only compute
# positions are not counted: a body has about as many of them, and they are gone before anything is compiled.
MOST_OPERATORS = 1 << 13
MOST_DEPTH = 16  # of graphs that call each other; converters write one or two


class Stays(Exception):
    """A reason in one clause, and what to do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


def has_control_flow(graph: Graph) -> bool:
    """Whether the graph has loops or branches."""
    return any(op.code in CONTROL for op in graph.operators)
