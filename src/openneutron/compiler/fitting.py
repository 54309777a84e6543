"""Compiles each group of operators as one NeutronGraph, or cuts it into as few pieces as fit the memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from openneutron.compiler.front.fuse import fuse
from openneutron.compiler.front.ingest import Group, extract, too_small
from openneutron.compiler.front.legalize import legalize
from openneutron.compiler.front.memory_limits import explain_too_large
from openneutron.compiler.front.parsed_model import OperatorCache
from openneutron.compiler.plan.shortage import Shortage, TooManyEnds
from openneutron.compiler.variables import Variables
from openneutron.errors import InternalError
from openneutron.litert.graph import Graph
from openneutron.machine.targets import Target
from openneutron.options import Options
from openneutron.verdict import Reason

# The function that compiles one graph; the pipeline passes its own, which avoids an import cycle.
Compile = Callable[[Graph, Target, Options, Variables, OperatorCache], Any]


@dataclass
class Fitting:
    """Compiles pieces of one graph, each once.

    Example:
        >>> fitting = Fitting(graph, target, options, variables, compile_graph, checks)
        >>> [fitting.unit(piece) for piece in fitting.pieces(group.operators)]
    """

    graph: Graph
    target: Target
    options: Options
    variables: Variables
    compile: Compile
    checks: OperatorCache
    known: dict[tuple[int, ...], Any] = field(default_factory=dict)

    def try_compile(self, operators: list[int]) -> Any:
        """Compile a piece as one NeutronGraph; returns a `Shortage` where it does not fit."""
        key = tuple(operators)
        if key not in self.known:
            part, _, _ = extract(self.graph, Group(True, operators))
            try:
                self.known[key] = self.compile(part, self.target, self.options, self.variables, self.checks)
            except Shortage as error:
                self.known[key] = error
        return self.known[key]

    def unit(self, operators: list[int]) -> Any:
        """Return the compiled piece; an `InternalError` where it does not fit."""
        found = self.try_compile(operators)
        if isinstance(found, Shortage):
            raise InternalError(f"a piece of {len(operators)} operators does not fit after all: {found.message}")
        return found

    def split_to_fit(self, operators: list[int]) -> list[list[int]]:
        """Split operators into as few pieces as fit; an operator that fits in none is a piece of its own."""
        waiting, done = [operators], []
        while waiting:
            piece = waiting.pop(0)
            found = self.try_compile(piece)
            if not isinstance(found, Shortage) or len(piece) == 1:
                done.append(piece)
                continue
            crowded, middle = isinstance(found, TooManyEnds), len(piece) // 2
            if self.options.one_graph or (self.options.fit_bytes is not None and not crowded):
                raise found
            smaller = self._with_variables_whole([piece[:middle], piece[middle:]] if crowded else self._cut(piece))
            if len(smaller) == 1:
                done.append(piece)
            else:
                waiting = smaller + waiting
        return done

    def explain_misfits(self, piece: list[int], group: Group) -> dict[int, Reason]:
        """Return the operators of a piece that stay on the CPU with their reasons: too large, or too few for a NeutronGraph."""
        found = self.try_compile(piece)
        if isinstance(found, Shortage):
            tied = [at for at in piece if any(at in one.users for one in self.variables.by_name.values())]
            if len(piece) == 1 and not isinstance(found, TooManyEnds):
                return {piece[0]: explain_too_large(self.graph, piece[0], found.needs, found.ends, self.target)}
            # Operators of one variable stay together, so the figures are those of all of them.
            return {at: Reason("too_large", found.message, "", found.hint) for at in tied or piece}
        minimum = self.options.minimum_operators_per_graph
        if len(piece) < len(group.operators) and too_small(self.graph, Group(True, piece), minimum):
            return {at: Reason("group_too_small", "its piece is not worth a NeutronGraph", "") for at in piece}
        return {}

    def _cut(self, piece: list[int]) -> list[list[int]]:
        """Split a piece that does not fit into smaller ones.

        An operator goes with the last of its nodes, and never before the operators that make its inputs.
        """
        from openneutron.compiler.cutting import cut_points  # most models fit

        part, _, _ = extract(self.graph, Group(True, piece))
        graph = legalize(part, self.target, self.variables, self.checks)
        fuse(graph, self.target, self.options.passes_off, thrifty=True)
        piece_of: dict[int, int] = {}
        for number, (begin, end) in enumerate(pairwise(cut_points(graph, self.target))):
            for node in graph.nodes[begin:end]:
                piece_of |= dict.fromkeys(node.sources, number)
        made_in: dict[int, int] = {}
        groups: dict[int, list[int]] = {}
        for at, op in enumerate(part.operators):
            number = max([piece_of.get(at, 0), *(made_in.get(tensor, 0) for tensor in op.inputs)])
            made_in |= dict.fromkeys(op.outputs, number)
            groups.setdefault(number, []).append(piece[at])
        made = [groups[number] for number in sorted(groups)]
        return made if len(made) > 1 else [[index] for index in piece]

    def _with_variables_whole(self, pieces: list[list[int]]) -> list[list[int]]:
        """Join all pieces between two operators of one variable, because a variable must be in one graph."""
        for variable in self.variables.by_name.values():
            using = [at for at, piece in enumerate(pieces) if not set(piece).isdisjoint(variable.users)]
            if len(using) > 1:
                first, last = min(using), max(using) + 1
                joined = sorted(index for piece in pieces[first:last] for index in piece)
                pieces = [*pieces[:first], joined, *pieces[last:]]
        return pieces
