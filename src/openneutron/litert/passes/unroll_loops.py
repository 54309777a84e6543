"""UnrollLoops: a WHILE whose number of trips is constant becomes its body that many times, an IF its branch.

Before:  n, h, y = WHILE(0, h0, y0): n < 3 → n + 1, f(x[n], h), y with row n = h
After:   h1 = f(x[0], h0); h2 = f(x[1], h1); h = f(x[2], h2); y = CONCATENATION(h1, h2, h)

Counters become constants, and so do all positions that are computed from them. `roll_steps` makes one loop of the steps again.
A loop with an operator that the caller refuses stays unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from openneutron.litert.graph import DType, Graph, Model, Operator, Tensor
from openneutron.litert.operator_options import make_options
from openneutron.litert.passes.control_flow import (
    CONTROL,
    LOOP,
    MOST_DEPTH,
    MOST_OPERATORS,
    NotUnrolled,
    has_control_flow,
)
from openneutron.litert.passes.count_trips import Work, count_trips, same_kind
from openneutron.litert.passes.fold_constants import ALL_TOGETHER, values_of
from openneutron.litert.passes.fuse_updates import fuse_updates
from openneutron.litert.passes.resolve_shape import resolve_shape
from openneutron.litert.versions import version_of

_MOST_COPIED = 4 * MOST_OPERATORS
_VALUES = 16  # carried values that cost as much as one operator; layers carry about ten
_AGAIN = "convert the model again"
_FEWER = "run the model on fewer steps at a time"
_FUSED = frozenset(
    {"CONCATENATION", "DYNAMIC_UPDATE_SLICE", "SLICE"}
)  # checked only after updates are fused, which may remove them
_VARIABLES = frozenset({"ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "VAR_HANDLE"})

Fits = Callable[[Graph, Operator], tuple[str, str] | None]


@dataclass
class Unrolled:
    """Loops that were unrolled, by name with their trips, and the operators that stay with their reasons."""

    loops: list[tuple[str, int]]
    stays: list[tuple[Operator, NotUnrolled]]
    changed: bool = False


def unroll_loops(model: Model, fits: Fits, left_out: Callable[[Graph, Operator], bool] | None = None) -> Unrolled:
    """Rewrite the main graph in place. `fits` returns why an operator of a body is refused, with a hint, or None.

    Loops for which `left_out` is true stay.

    Example:
        >>> unroll_loops(model, lambda graph, op: None).loops
        [('lstm/while', 25)]
    """
    found = Unrolled([], [])
    graph = model.main
    if not has_control_flow(graph):
        return found
    budget, work = _Budget(), Work()
    kept = set(graph.outputs)
    reads = Counter(index for op in graph.operators for index in op.inputs) + Counter(graph.outputs)
    operators: list[Operator] = []
    for op in graph.operators:
        if op.code not in CONTROL or (left_out is not None and left_out(graph, op)):
            if not kept.intersection(op.outputs):
                budget.fold(graph, op)
            operators.append(op)
            continue
        size, spent = len(graph.tensors), replace(budget)
        try:
            straight = _Inliner(model, budget, work, fits)
            straight.results = straight.operator(graph, op, op.inputs, "")
            operators += straight.finish(op, reads)
            found.loops += straight.loops
            found.changed = True
        except NotUnrolled as reason:
            del graph.tensors[size:]
            budget.operators, budget.elements = (
                spent.operators,
                spent.elements,
            )  # the time for copies is spent even if the loop stays
            found.stays.append((op, reason))
            operators.append(op)
    graph.operators = operators
    return found


@dataclass
class _Budget:
    """Remaining limits: copies of operators, computing operators among them, and elements of constants."""

    copies: int = _MOST_COPIED
    operators: int = MOST_OPERATORS
    elements: int = ALL_TOGETHER

    def fold(self, graph: Graph, op: Operator) -> bool:
        """Fold an operator on constants into values; returns False where it must run."""
        if not op.outputs:
            return False
        resolve_shape(graph, op)
        values = values_of(graph, op) if self.elements > 0 else None
        if values is None:
            return False
        self.elements -= sum(value.size for value in values)
        for index, value in zip(op.outputs, values, strict=True):
            graph.tensors[index].data = value
        return True


class _Inliner:
    """Copies the operators of one loop or branch, and of nested ones, into the main graph."""

    def __init__(self, model: Model, budget: _Budget, work: Work, fits: Fits) -> None:
        self.model, self.graph, self.budget, self.work, self.fits = model, model.main, budget, work, fits
        self.depth = 0
        self.made: list[Operator] = []
        self.results: list[int] = []
        self.loops: list[tuple[str, int]] = []
        self.constants: dict[tuple[int, int], int] = {}  # (graph, tensor) → the same in the main graph

    def operator(self, source: Graph, op: Operator, given: Sequence[int], trip: str) -> list[int]:
        """Unroll a loop or branch on tensors of the main graph; returns its outputs there."""
        if min(given, default=0) < 0:
            raise NotUnrolled("one of its values is absent", _AGAIN)
        name = source.tensors[op.outputs[0]].name if op.outputs else op.code
        results = self._loop(op, given, name, trip) if op.code == LOOP else self._branch(op, given, trip)
        if len(results) != len(op.outputs):
            raise NotUnrolled(f"it has {len(op.outputs)} outputs, its graphs {len(results)}", _AGAIN)
        return results

    def _find_graph(self, op: Operator, field: str) -> tuple[Graph, int]:
        number = getattr(op.options, field, None)
        if number is None or not 0 < number < len(self.model.graphs):
            raise NotUnrolled(f"its graph {number} does not exist", _AGAIN)
        return self.model.graphs[number], number

    def _loop(self, op: Operator, given: Sequence[int], name: str, trip: str) -> list[int]:
        condition, _ = self._find_graph(op, "condSubgraphIndex")
        body, number = self._find_graph(op, "bodySubgraphIndex")
        sizes = {len(given), len(condition.inputs), len(body.inputs), len(body.outputs)}
        if len(sizes) > 1 or len(condition.outputs) != 1:
            raise NotUnrolled("its graphs do not take and give the values that it carries", _AGAIN)
        trips = count_trips(condition, body, [self.graph.tensors[index].data for index in given], self.work)
        before = len(self.made)
        for at in range(trips):
            given = self._inline(number, given, f"{trip}/{at}")
            if at == 0:
                self._check_budget(trips, len(self.made) - before)
                self._check_fits(one for one in self.made[before:] if one.code not in _FUSED)
        if not trip:
            self.loops.append((body.name or name, trips))
        return list(given)

    def _check_budget(self, trips: int, each: int) -> None:
        """Raise if all trips together would exceed the limit; the first trip has `each` operators."""
        if (trips - 1) * each > self.budget.operators:
            raise NotUnrolled(
                f"the loop runs {trips:,} times with {each:,} operators each, and at most {MOST_OPERATORS:,} of all loops are "
                "unrolled",
                _FEWER,
            )

    def _branch(self, op: Operator, given: Sequence[int], trip: str) -> list[int]:
        _, then = self._find_graph(op, "thenSubgraphIndex")
        _, otherwise = self._find_graph(op, "elseSubgraphIndex")
        condition = self.graph.tensors[given[0]].data if given else None
        if condition is None or condition.dtype != DType.BOOL.numpy or condition.size != 1:
            raise NotUnrolled(
                "which of its branches runs is only known at run time", "compute both and choose between them"
            )
        return self._inline(then if condition.reshape(()) else otherwise, given[1:], trip)

    def _inline(self, number: int, given: Sequence[int], trip: str) -> list[int]:
        """Copy the operators of a graph to tensors of the main graph; returns its outputs there."""
        body = self.model.graphs[number]
        self._spend_copies(len(given) // _VALUES)
        if self.depth >= MOST_DEPTH:
            raise NotUnrolled(f"its graphs call each other more than {MOST_DEPTH} deep", "put loops behind each other")
        self.depth += 1
        if len(given) != len(body.inputs):
            raise NotUnrolled(f"it hands {len(given)} values to a graph of {len(body.inputs)} inputs", _AGAIN)
        places = {
            inner: self._view_as(outer, body.tensors[inner]) for inner, outer in zip(body.inputs, given, strict=True)
        }
        for op in body.operators:
            self._spend_copies(1)
            for index in (*op.inputs, *op.intermediates):
                if index >= 0 and index not in places:
                    places[index] = self._constant(number, index)
            if op.code in CONTROL:
                results = self.operator(body, op, [places.get(index, -1) for index in op.inputs], trip)
                for index, outer in zip(op.outputs, results, strict=True):
                    places[index] = self._view_as(outer, body.tensors[index])
                continue
            self._copy_operator(body, op, places, trip)
        self.depth -= 1
        return [places[index] if index in places else self._constant(number, index) for index in body.outputs]

    def _spend_copies(self, count: int) -> None:
        self.budget.copies -= count
        if self.budget.copies < 0:
            raise NotUnrolled(f"more than {_MOST_COPIED:,} operators of all loops would be unrolled", _FEWER)

    def _constant(self, number: int, index: int) -> int:
        if (number, index) not in self.constants:
            tensor = self.model.graphs[number].tensors[index]
            if tensor.is_variable or tensor.data is None:
                raise NotUnrolled(
                    f"its graph {number} keeps {tensor.name!r} from run to run", "keep it outside of the loop"
                )
            self.constants[number, index] = self._add(tensor)
        return self.constants[number, index]

    def _copy_operator(self, body: Graph, op: Operator, places: dict[int, int], trip: str) -> None:
        if op.code in _VARIABLES or not op.outputs:
            raise NotUnrolled(
                f"its body has {op.label}, which acts by more than its results", "keep it outside of the loop"
            )
        for index in op.outputs:
            tensor = body.tensors[index]
            places[index] = self._add(replace(tensor, name=f"{tensor.name}{trip}"))
        inputs, outputs, inner = (
            [places[index] if index >= 0 else -1 for index in part]
            for part in (op.inputs, op.outputs, op.intermediates)
        )
        made = replace(op, inputs=inputs, outputs=outputs, intermediates=inner)
        if not self.budget.fold(self.graph, made):
            if self.budget.elements <= 0:
                raise NotUnrolled(f"its constants have more than {ALL_TOGETHER:,} elements", _FEWER)
            self.budget.operators -= 1
            if self.budget.operators < 0:
                raise NotUnrolled(f"more than {MOST_OPERATORS:,} operators of all loops would be unrolled", _FEWER)
            self.made.append(_gather_to_slice(self.graph, made))

    def _view_as(self, outer: int, inner: Tensor) -> int:
        """Return a tensor of the main graph with the body's quantization: LiteRT passes bytes without rescaling."""
        tensor = self.graph.tensors[outer]
        if not same_kind(tensor, inner):
            raise NotUnrolled(
                f"{inner.name!r} is {inner.dtype} {list(inner.shape)}, and is given {tensor.dtype} {list(tensor.shape)}",
                "carry values of one shape and type through the loop",
            )
        if tensor.is_variable or tensor.dtype.is_opaque:
            raise NotUnrolled(
                f"{tensor.name!r} is kept from run to run", "read it before the loop and assign it behind"
            )
        if tensor.quantization == inner.quantization:
            return outer
        made = self._add(replace(inner, shape=tensor.shape, data=tensor.data))
        if tensor.data is None:
            self._view(outer, made)
        return made

    def _view(self, source: int, output: int) -> None:
        shape = np.array(self.graph.tensors[output].shape, np.int32)
        shape.flags.writeable = False
        named = self._add(Tensor("", shape.shape, DType.INT32, data=shape))
        options = make_options("RESHAPE", {"new_shape": shape.tolist()})
        self.made.append(Operator("RESHAPE", [source, named], [output], options, version=version_of("RESHAPE")))

    def _add(self, tensor: Tensor) -> int:
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def _check_fits(self, operators: Iterable[Operator]) -> None:
        for one in operators:
            why = self.fits(self.graph, one)
            if why is not None:
                where = f"{one.label} of its body ({self.graph.tensors[one.outputs[0]].name!r})"
                raise NotUnrolled(f"{where} has to stay on the CPU, and the loop with it: {why[0]}", why[1])

    def finish(self, op: Operator, reads: Counter[int]) -> list[Operator]:
        """Return the operators, which now write the loop's outputs; unread ones are removed."""
        tensors = self.graph.tensors
        wanted = [(out, value) for out, value in zip(op.outputs, self.results, strict=True) if reads[out]]
        for out, value in wanted:
            if not same_kind(tensors[value], tensors[out]):
                raise NotUnrolled(
                    f"its output {tensors[out].name!r} has another shape or type than what it carries", _AGAIN
                )
        computed = [(out, value) for out, value in wanted if tensors[value].data is None]
        self.made = fuse_updates(self.graph, self.made, [value for _, value in computed])
        self._check_fits(self.made)
        makers = {index for one in self.made for index in one.outputs}
        renamed: dict[int, int] = {}
        for out, value in computed:
            tensors[out].shape = tensors[value].shape
            same = tensors[value].quantization == tensors[out].quantization
            if value in makers and value not in renamed and same:
                renamed[value] = out
            else:
                self._view(renamed.get(value, value), out)
        for one in self.made:
            one.inputs = [renamed.get(index, index) for index in one.inputs]
            one.outputs = [renamed.get(index, index) for index in one.outputs]
        for out, value in wanted:
            if tensors[value].data is not None:
                if out in self.graph.outputs:
                    self._view(value, out)
                else:
                    tensors[out].data = tensors[value].data
        return self.made


def _gather_to_slice(graph: Graph, op: Operator) -> Operator:
    """Turn a GATHER at one constant position into a SLICE, which `roll_steps` understands."""
    named = (*op.inputs, *op.outputs)
    if op.code != "GATHER" or len(op.inputs) != 2 or len(op.outputs) != 1 or min(named) < 0:
        return op
    x, at, y = (graph.tensors[index] for index in named)
    axis, batch = (int(getattr(op.options, field, 0)) for field in ("axis", "batchDims"))
    rank = len(x.shape)
    if at.data is None or at.data.size != 1 or at.dtype not in (DType.INT32, DType.INT64):
        return op
    if batch or not -rank <= axis < rank:
        return op
    axis %= rank
    first = int(at.data.reshape(()))
    expected = (*x.shape[:axis], *at.shape, *x.shape[axis + 1 :])
    if not 0 <= first < x.shape[axis] or y.shape != expected or x.quantization != y.quantization or len(at.shape) > 1:
        return op
    begin = [first if dim == axis else 0 for dim in range(rank)]
    end = [first + 1 if dim == axis else size for dim, size in enumerate(x.shape)]
    arguments = []
    for numbers in (begin, end, [1] * rank):
        data = np.array(numbers, np.int32)
        data.flags.writeable = False
        graph.tensors.append(Tensor("", (rank,), DType.INT32, data=data))
        arguments.append(len(graph.tensors) - 1)
    options = make_options("STRIDED_SLICE", {"shrink_axis_mask": 0 if at.shape else 1 << axis})
    return Operator(
        "STRIDED_SLICE", [op.inputs[0], *arguments], op.outputs, options, version=version_of("STRIDED_SLICE")
    )
