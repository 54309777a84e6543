"""Control flow: chooses branches and unrolls loops during import; where only the inputs decide, both branches are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from openneutron.errors import FormatError, UnsupportedError
from openneutron.onnx.ops import converts
from openneutron.onnx.read import describe_node
from openneutron.onnx.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openneutron.onnx.call import Call
    from openneutron.onnx.elaborate import Elaborator

# Most iterations of an unrolled loop: a recurrent layer over ten seconds of audio has a thousand.
_MOST_ITERATIONS = 4096


def _truth(call: Call, value: Value, what: str) -> bool:
    if value.data is None:
        raise UnsupportedError(
            f"{what} is computed from the model's inputs; only what is known while importing can be decided",
            hint="give sizes that decide it, or cut the model there",
        )
    return bool(value.data.reshape(-1)[0])


def _graph(call: Call, name: str) -> Any:
    graph = call.attribute(name)
    if graph is None:
        raise FormatError(f"its {name} is missing", hint="export the model again")
    return graph


@converts("If", structural=True)
def branch(call: Call, elaborator: Elaborator, known: Mapping[str, Value]) -> list[Value]:
    """Run the branch that a known condition chooses; both where the inputs decide, and choose between their results."""
    condition = call.value(0)
    if condition.data is not None:
        chosen = "then_branch" if _truth(call, condition, "its condition") else "else_branch"
        return elaborator.graph(_graph(call, chosen), known)
    sides = [elaborator.graph(_graph(call, name), known) for name in ("then_branch", "else_branch")]
    elaborator.notes.append(f"{describe_node(call.node)}: both branches are computed, because the inputs choose one")
    return [_chosen(elaborator, call, condition, yes, no) for yes, no in zip(*sides, strict=True)]


def _chosen(elaborator: Elaborator, call: Call, condition: Value, yes: Value, no: Value) -> Value:
    """Choose at run time between the results of two branches; each result must have one shape and type."""
    if yes is no:
        return yes
    forms = ["nothing" if one.absent else "a sequence" if one.items is not None else _form(one) for one in (yes, no)]
    if forms[0] != forms[1] or not forms[0].startswith("torch"):
        raise UnsupportedError(
            f"the inputs decide whether its result is {forms[0]} or {forms[1]}, and a program has fixed sizes",
            hint="give sizes that decide it, or cut the model there",
        )
    (made,) = elaborator.compute(call, [condition, yes, no], _choice)
    return made


def _form(value: Value) -> str:
    return f"{value.like.dtype} of shape {list(value.like.shape)}"


def _choice(call: Call) -> torch.Tensor:
    condition, yes, no = call.tensors()
    if condition.dim() > yes.dim():  # one element, which must not add a dimension
        condition = condition.reshape(())
    return torch.where(condition, yes, no)


@converts("Loop", structural=True)
def loop(call: Call, elaborator: Elaborator, known: Mapping[str, Value]) -> list[Value]:
    """Unroll a loop: its count must be known, and its condition in every iteration."""
    body = _graph(call, "body")
    count = None
    if call.has(0):
        if call.value(0).data is None:
            raise UnsupportedError("how often it runs is computed from the model's inputs", hint="make it a constant")
        count = call.numbers(0)[0]
    going = _truth(call, call.value(1), "its condition") if call.has(1) else True
    carried: list[Value] = [call.value(index) for index in range(2, len(call.inputs))]
    scanned: list[list[Value]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
    iteration = 0
    condition = Value(data=torch.tensor(True))
    while going and (count is None or iteration < count):
        if iteration >= _MOST_ITERATIONS:
            raise UnsupportedError(f"it runs more than {_MOST_ITERATIONS} times", hint="the program would be too long")
        names = [one.name for one in body.input]
        given = [Value(data=torch.tensor(iteration)), condition, *carried]
        results = elaborator.graph(body, {**known, **dict(zip(names, given, strict=True))})
        going = _truth(call, results[0], "its condition")
        condition, carried = results[0], results[1 : 1 + len(carried)]
        for column, one in zip(scanned, results[1 + len(carried) :], strict=True):
            column.append(one)
        iteration += 1
    stacked = []
    for position, column in enumerate(scanned):
        declared = body.output[1 + len(carried) + position]
        stacked.append(_stack(elaborator, call, column) if column else _empty(declared))
    return [*carried, *stacked]


def _stack(elaborator: Elaborator, call: Call, column: list[Value], axis: int = 0) -> Value:
    (made,) = elaborator.compute(call, column, lambda inner: torch.stack(inner.tensors(), axis))
    return made


def _empty(declared: Any) -> Value:
    """Return the empty result of a loop without iterations, with the declared shape."""
    from openneutron.onnx.tensors import torch_type

    kind = declared.type.tensor_type
    sizes = [int(one.dim_value) for one in kind.shape.dim]
    return Value(data=torch.zeros([0, *sizes], dtype=torch_type(kind.elem_type)))


def _selects(axis: int, at: int) -> Callable[[Call], torch.Tensor]:
    return lambda inner: inner.tensor(0).select(axis, at)


@converts("Scan", structural=True)
def scan(call: Call, elaborator: Elaborator, known: Mapping[str, Value]) -> list[Value]:
    """Unroll a scan: its length is a size, and sizes are known."""
    if call.version < 9:
        raise UnsupportedError("Scan before opset 9 has a batch dimension of its own", hint="export for a newer opset")
    body = _graph(call, "body")
    count = int(call.attribute("num_scan_inputs", 0))
    states = [call.value(index) for index in range(len(call.inputs) - count)]
    scans = [call.value(index) for index in range(len(call.inputs) - count, len(call.inputs))]
    outputs = len(body.output) - len(states)
    axes = [int(one) for one in call.attribute("scan_input_axes") or [0] * count]
    backwards = [int(one) for one in call.attribute("scan_input_directions") or [0] * count]
    out_axes = [int(one) for one in call.attribute("scan_output_axes") or [0] * outputs]
    out_backwards = [int(one) for one in call.attribute("scan_output_directions") or [0] * outputs]
    lengths = {int(one.like.shape[axis]) for one, axis in zip(scans, axes, strict=True)}
    if len(lengths) != 1 or max(lengths) > _MOST_ITERATIONS:
        raise UnsupportedError(
            f"it scans over {sorted(lengths)} elements", hint=f"at most {_MOST_ITERATIONS}, all alike"
        )
    (length,) = lengths
    columns: list[list[Value]] = [[] for _ in range(outputs)]
    for step in range(length):
        given = list(states)
        for one, axis, backward in zip(scans, axes, backwards, strict=True):
            at = length - 1 - step if backward else step
            given += elaborator.compute(call, [one], _selects(axis, at))
        names = [one.name for one in body.input]
        results = elaborator.graph(body, {**known, **dict(zip(names, given, strict=True))})
        states = results[: len(states)]
        for column, one in zip(columns, results[len(states) :], strict=True):
            column.append(one)
    collected = []
    for column, axis, backward in zip(columns, out_axes, out_backwards, strict=True):
        collected.append(_stack(elaborator, call, column[::-1] if backward else column, axis))
    return [*states, *collected]
