"""Count how often a WHILE runs its body, where that follows from constants alone.

Before:  i = 3; WHILE i < 9 AND i < n: i = i + 2, x = f(x)      n is 100
After:   3 trips, whatever x is

Only the values that the condition depends on are computed for each trip; other carried values may be unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from openneutron.litert.graph import Array, DType, Graph, Operator, Tensor
from openneutron.litert.passes.constant_values import LARGEST, evaluate
from openneutron.litert.passes.control_flow import MOST_TRIPS, NotUnrolled

# Operators that may be looked at while counting all loops of a model, at some 10 microseconds each: a file of many loops must
# not take longer than one of many operators.
_MOST_WORK = 1 << 16
_FIXED = "give the loop a constant number of trips, or let the converter unroll it: in Keras by `unroll=True`"


@dataclass
class Work:
    """How many more operators may run while the trips of loops are counted."""

    left: int = _MOST_WORK

    def spend(self, operators: int) -> None:
        """Spend some of the budget; raises `NotUnrolled` when it is used up."""
        self.left -= operators
        if self.left < 0:
            raise NotUnrolled(
                "the loops of this model take too long to count", "run the model on fewer steps at a time"
            )


def count_trips(condition: Graph, body: Graph, initial: Sequence[Array | None], work: Work | None = None) -> int:
    """Return how often the body runs from these initial values (None where not constant).

    Raises `NotUnrolled` where the number is unknown or above `MOST_TRIPS`.

    Example:
        >>> count_trips(condition, body, [np.int32(0), None])
        25
    """
    work = work or Work()
    wanted = _close(condition, body, work)
    values = dict(enumerate(initial))
    unknown = [at for at in sorted(wanted) if values[at] is None]
    if unknown:
        name = body.tensors[body.inputs[unknown[0]]].name
        message = (
            f"its number of trips is not constant: it depends on {name!r}, whose first value is only known at run time"
        )
        raise NotUnrolled(message, _FIXED)
    deciding, stepping = (
        _operators_for(condition, condition.outputs),
        _operators_for(body, [body.outputs[at] for at in wanted]),
    )
    each = 1 + len(deciding) + len(stepping) + len(wanted)
    for trips in range(MOST_TRIPS + 1):
        work.spend(each)
        if not _as_bool(_run(condition, deciding, values)[0]):
            return trips
        made = _run(body, stepping, values)
        values = {at: made[at] for at in wanted}
    raise NotUnrolled(
        f"the loop runs more than {MOST_TRIPS:,} times, and no more than that are unrolled",
        "run the model on fewer steps at a time",
    )


def _operators_for(graph: Graph, outputs: Sequence[int]) -> list[Operator]:
    """Return the operators that these outputs depend on, in order."""
    wanted, found = set(outputs), []
    for op in reversed(graph.operators):
        if wanted.intersection(op.outputs):
            wanted.update(op.inputs)
            found.append(op)
    return found[::-1]


def _close(condition: Graph, body: Graph, work: Work) -> set[int]:
    """Return the positions of the carried values that the condition depends on, directly or through the body."""
    found: set[int] = set()
    waiting = _inputs_for(condition, condition.outputs)
    while waiting:
        found |= waiting
        work.spend(len(body.operators) + len(body.inputs))
        waiting = _inputs_for(body, [body.outputs[at] for at in waiting]) - found
    return found


def _inputs_for(graph: Graph, outputs: Sequence[int]) -> set[int]:
    named = {*outputs, *(index for op in _operators_for(graph, outputs) for index in op.inputs)}
    return {at for at, index in enumerate(graph.inputs) if index in named}


def _run(graph: Graph, operators: Sequence[Operator], given: Mapping[int, Array | None]) -> list[Array | None]:
    """The values of the graph's outputs; None where one is not computed."""
    known = {graph.inputs[at]: value for at, value in given.items()}
    for index, one in known.items():
        if one is not None and one.dtype != graph.tensors[index].dtype.numpy:
            raise NotUnrolled(
                f"its graphs do not agree on the type of {graph.tensors[index].name!r}", "convert the model again"
            )

    def value(index: int) -> Array | None:
        held = known.get(index)
        return graph.tensors[index].data if held is None else held

    for op in operators:
        inputs = [value(index) for index in op.inputs if index >= 0]
        held = [one for one in inputs if one is not None]
        small = sum(graph.tensors[index].elements for index in op.outputs) <= LARGEST // MOST_TRIPS
        made = evaluate(graph, op, held) if small and len(held) == len(op.inputs) else None
        if made is None:
            raise NotUnrolled(f"its number of trips is not constant: it depends on what {op.label} computes", _FIXED)
        known.update(zip(op.outputs, made, strict=True))
    return [value(index) for index in graph.outputs]


def _as_bool(value: Array | None) -> bool:
    if value is None or value.dtype != DType.BOOL.numpy or value.size != 1:
        raise NotUnrolled("its condition is not one BOOL", "convert the model again")
    return bool(value.reshape(()))


def same_kind(one: Tensor, other: Tensor) -> bool:
    """Return whether a value of one tensor can be passed to the other without conversion."""
    fits = [size in (-1, given) for size, given in zip(other.shape_signature or other.shape, one.shape, strict=False)]
    return one.dtype is other.dtype and len(one.shape) == len(other.shape) and all(fits)
