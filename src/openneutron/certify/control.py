"""Evaluates loops and branches of a model where their conditions are known.

The checker has its own evaluation: it walks the graph of a condition with tags like any other graph. The condition decides
when the one byte of its result is known. Otherwise the operator is opaque: it equals only one with the same graphs and inputs.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from openneutron.certify.operators import Context
from openneutron.certify.read.litert import Graph, Operator, Tensor
from openneutron.certify.refused import Refused
from openneutron.certify.tags import value_of
from openneutron.certify.values import Buffers, Values
from openneutron.certify.world import World

CONTROL = frozenset({"WHILE", "IF"})
# Operators with side effects, or unknown to the checker, are not evaluated in loops.
_ACTING = frozenset({"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE", "CALL", "CUSTOM"})
_MOST_OPERATORS = 1 << 16  # in all iterations, twice what the compiler unrolls; each takes about 50 microseconds
_MOST_TRIPS = 1 << 13  # of one loop, twice what the compiler unrolls
_VALUES = 4  # passed to a graph count as one operator
_MOST_BYTES = 1 << 28  # of the tensors in all iterations
_MOST_DEPTH = 16  # of graphs that call each other

Value = tuple[tuple[int, ...], "array[int]"]  # shape and tags
Run = Callable[[Graph, Operator, Values], "list[array[int]]"]


def called_graphs(op: Operator) -> dict[str, int]:
    """Return the numbers of the graphs that an operator calls, by the name of the field that holds the number."""
    return {name: number for name, number in op.options.items() if name.endswith("SubgraphIndex") or name == "Subgraph"}


def contents(models: Sequence[Graph], op: Operator, depth: int = 0) -> tuple[object, ...]:
    """Return the operator's attributes, with the contents of called graphs in place of their numbers."""
    graphs = called_graphs(op)
    if not graphs:
        return op.attributes
    if depth > _MOST_DEPTH:
        raise Refused(f"operator {op.number} ({op.code}): graphs call each other, or themselves", op.offset)
    name, kind, options, rest = op.attributes
    inner = tuple((field, _graph(models, number, op, depth)) for field, number in sorted(graphs.items()))
    return name, kind, tuple(one for one in options if one[0] not in graphs), rest, inner


def _graph(models: Sequence[Graph], number: int, op: Operator, depth: int) -> tuple[object, ...]:
    if not 0 < number < len(models):
        raise Refused(f"operator {op.number} ({op.code}) names graph {number} of {len(models)}", op.offset)
    return describe_graph(models, number, depth)


def describe_graph(models: Sequence[Graph], number: int, depth: int = 0) -> tuple[object, ...]:
    """Return everything that a graph says, with the contents of called graphs in place of their numbers."""
    graph = models[number]
    tensors = tuple((t.name, t.form, None if t.data is None else bytes(t.data)) for t in graph.tensors)
    operators = tuple(
        (contents(models, one, depth + 1), one.inputs, one.outputs, one.intermediates) for one in graph.operators
    )
    return graph.label, graph.inputs, graph.outputs, tensors, operators


@dataclass
class Room:
    """The budget left for the loops of a model."""

    operators: int = _MOST_OPERATORS
    bytes: int = _MOST_BYTES


class Control:
    """Evaluates one loop or branch; `run` returns the output tags of one operator."""

    def __init__(self, models: Sequence[Graph], world: World, run: Run, room: Room) -> None:
        self.models, self.world, self.run, self.where, self.room = models, world, run, world.label, room
        self.buffers: Buffers = {}
        self.spent = 0  # bytes of the tensors in all iterations

    def evaluate(self, op: Operator, given: list[Value]) -> list[Value] | None:
        """Return the operator's outputs; None if a condition is unknown, a graph has side effects or the budget is spent."""
        numbers = called_graphs(op)
        if len(numbers) != 2 or not all(self._plain(number, 0) for number in numbers.values()):
            return None
        if op.code == "IF":
            return self._branch(numbers, given)
        return self._loop(self.models[numbers["CondSubgraphIndex"]], self.models[numbers["BodySubgraphIndex"]], given)

    def _plain(self, number: int, depth: int) -> bool:
        """Return whether a graph, with all graphs that it calls, has no side effects."""
        if not 0 < number < len(self.models) or depth > _MOST_DEPTH:
            return False
        graph = self.models[number]
        if any(tensor.variable for tensor in graph.tensors):
            return False
        return all(
            op.outputs and op.code not in _ACTING
            and (op.code not in CONTROL or all(self._plain(one, depth + 1) for one in called_graphs(op).values()))
            for op in graph.operators
        )  # fmt: skip

    def _branch(self, numbers: dict[str, int], given: list[Value]) -> list[Value] | None:
        known = value_of(given[0][1]) if given else None
        if known is None or len(known) != 1:
            return None
        return self._walk(self.models[numbers["ThenSubgraphIndex" if known[0] else "ElseSubgraphIndex"]], given[1:])

    def _loop(self, condition: Graph, body: Graph, given: list[Value]) -> list[Value] | None:
        for _ in range(_MOST_TRIPS):
            decided = self._walk(condition, given)
            known = value_of(decided[0][1]) if decided and len(decided) == 1 else None
            if known is None or len(known) != 1:
                return None
            if not known[0]:
                return given
            after = self._walk(body, given)
            if after is None or [one[0] for one in after] != [one[0] for one in given]:
                return None
            given = after
        return None

    def _walk(self, graph: Graph, given: list[Value]) -> list[Value] | None:
        """Return the outputs of a graph for these inputs; the inputs take the caller's shapes, as in LiteRT."""
        room = self.room
        room.operators -= 1 + len(graph.operators) + len(given) // _VALUES
        room.bytes -= graph.size
        self.spent += graph.size
        if room.operators < 0 or room.bytes < 0 or len(given) != len(graph.inputs):
            return None
        own = replace(graph, tensors=list(graph.tensors))
        tensors, values = own.tensors, Values(own, self.buffers)
        for index, (shape, tags) in zip(graph.inputs, given, strict=True):
            if tensors[index].shape != shape:
                tensors[index] = replace(tensors[index], shape=shape)
            if tensors[index].size != len(tags):
                return None
            values[index] = tags
        for op in graph.operators:
            self.world.label = f"{self.where}, operator {op.number} ({op.code})"
            known = all(index < 0 or values.is_known(index) for index in op.inputs)
            follows = _shape(Context(self.world, own, op, values)) if known and op.inputs else None
            if follows is not None:
                tensors[op.outputs[0]] = replace(tensors[op.outputs[0]], shape=follows)
            values.update(zip(op.outputs, self.run(own, op, values), strict=True))
        return [(tensors[index].shape, values[index]) for index in graph.outputs]


def _shape(c: Context) -> tuple[int, ...] | None:
    """Return the output shape of SLICE and CONCATENATION where it can be computed; None otherwise.

    In a loop, sizes of slices may depend on a counter, so the file leaves these shapes open.
    """
    x: Tensor = c.tensor(0)
    if c.op.code == "SLICE":
        begin, size = c.numbers(1), c.numbers(2)
        if begin is None or size is None or not len(begin) == len(size) == len(x.shape):
            return None
        counts = [n - b if s == -1 else s for n, b, s in zip(x.shape, begin, size, strict=True)]
        return tuple(counts) if min(counts, default=0) >= 0 else None
    if c.op.code == "CONCATENATION":
        shapes = [c.tensor(at).shape for at in range(len(c.op.inputs))]
        axis = c.op.options.get("Axis", 0)
        if any(len(shape) != len(x.shape) for shape in shapes) or not -len(x.shape) <= axis < len(x.shape):
            return None
        axis %= len(x.shape)
        return (*x.shape[:axis], sum(shape[axis] for shape in shapes), *x.shape[axis + 1 :])
    return None
