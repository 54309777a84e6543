"""Sequences and optional values: lists that exist only during import."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from openneutron.errors import FormatError
from openneutron.onnx.ops import converts
from openneutron.onnx.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openneutron.onnx.call import Call
    from openneutron.onnx.elaborate import Elaborator

    Known = Mapping[str, Value]


def _items(call: Call, index: int = 0) -> list[Value]:
    found = call.value(index).items
    if found is None:
        raise FormatError(f"its input {index} is a tensor, not a sequence", hint="export the model again")
    return list(found)


def _position(call: Call, index: int, count: int) -> int:
    at = call.numbers(index)[0]
    if not -count <= at < max(count, 1) and not (count == 0 and at == 0):
        raise FormatError(f"it reads element {at} of a sequence of {count}", hint="export the model again")
    return at


@converts("SequenceConstruct", structural=True)
def construct(call: Call, elaborator: Elaborator, known: Known) -> list[Value]:
    """Return a list of its inputs."""
    return [Value(items=[call.value(index) for index in range(len(call.inputs))])]


@converts("SequenceEmpty", structural=True)
def empty(call: Call, elaborator: Elaborator, known: Known) -> list[Value]:
    """Return an empty list."""
    return [Value(items=[])]


@converts("SequenceAt", structural=True)
def at(call: Call, elaborator: Elaborator, known: Known) -> list[Value]:
    """Return one element of a list."""
    items = _items(call)
    return [items[_position(call, 1, len(items))]]


@converts("SequenceInsert", structural=True)
def insert(call: Call, elaborator: Elaborator, known: Known) -> list[Value]:
    """Return a list with an element inserted."""
    items = _items(call)
    place = call.numbers(2)[0] if call.has(2) else len(items)
    items.insert(place, call.value(1))
    return [Value(items=items)]


@converts("SequenceErase", structural=True)
def erase(call: Call, elaborator: Elaborator, known: Known) -> list[Value]:
    """Return a list with an element removed."""
    items = _items(call)
    del items[_position(call, 1, len(items)) if call.has(1) else -1]
    return [Value(items=items)]


@converts("SequenceLength", structural=True)
def length(call: Call, elaborator: Elaborator, known: Known) -> list[Value]:
    """Return the length of a list."""
    return [Value(data=torch.tensor(len(_items(call)), dtype=torch.int64))]


@converts("SplitToSequence", structural=True)
def split(call: Call, elaborator: Elaborator, known: Known) -> list[Value]:
    """Split a tensor into a list."""
    axis, keep = int(call.attribute("axis", 0)), bool(call.attribute("keepdims", 1))
    size = call.shape(0)[axis]
    if not call.has(1):
        sizes = [1] * size
    else:
        given = call.numbers(1)
        whole = not call.shape(1)
        sizes = [min(given[0], size - at) for at in range(0, size, given[0])] if whole else given
    values, start = [], 0
    for one in sizes:
        first = start

        def cut(inner: Call, first: int = first, one: int = one) -> torch.Tensor:
            part = inner.tensor(0).narrow(axis, first, one)
            return part if keep or call.has(1) else part.squeeze(axis)

        values += elaborator.compute(call, [call.value(0)], cut)
        start += one
    return [Value(items=values)]


@converts("ConcatFromSequence", structural=True)
def concat(call: Call, elaborator: Elaborator, known: Known) -> list[Value]:
    """Concatenate a list to one tensor."""
    axis, new = int(call.attribute("axis", 0)), bool(call.attribute("new_axis", 0))
    function = torch.stack if new else torch.cat
    return elaborator.compute(call, _items(call), lambda inner: function(inner.tensors(), axis))


@converts("SequenceMap", structural=True)
def sequence_map(call: Call, elaborator: Elaborator, known: Known) -> list[Value]:
    """Apply a graph to each element of a list."""
    body = call.attribute("body")
    count = len(_items(call))
    names = [one.name for one in body.input]
    columns: list[list[Value]] = [[] for _ in body.output]
    for place in range(count):
        given = [
            value.items[place] if value.items is not None else value
            for value in (call.value(index) for index in range(len(call.inputs)))
        ]
        results = elaborator.graph(body, {**known, **dict(zip(names, given, strict=True))})
        for column, one in zip(columns, results, strict=True):
            column.append(one)
    return [Value(items=column) for column in columns]


@converts("Optional", structural=True)
def optional(call: Call, elaborator: Elaborator, known: Known) -> list[Value]:
    """Return a value, or none."""
    return [call.value(0) if call.inputs else Value(absent=True)]


@converts("OptionalHasElement", structural=True)
def has_element(call: Call, elaborator: Elaborator, known: Known) -> list[Value]:
    """Return whether there is a value."""
    return [Value(data=torch.tensor(call.has(0)))]


@converts("OptionalGetElement", structural=True)
def get_element(call: Call, elaborator: Elaborator, known: Known) -> list[Value]:
    """Return the value."""
    if not call.has(0):
        raise FormatError("it takes the value of an optional that has none", hint="export the model again")
    return [call.value(0)]
