"""Finds repeated steps: runs in which each node equals the one a step before, so that one loop body can replace them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.compiler.l1 import ITEM_BYTES, Alias, KernelGraph, Node
from openneutron.compiler.passes.rolling.body import LEAST_STEPS, ONE_INPUT, WITH_WEIGHTS, Body, Use, place_of

MOST_BODY = 64  # nodes of a body: a loop's microcode stays at some kilobytes


def find(graph: KernelGraph, kind: Callable[[Node], Any], least_size: int) -> Body | None:
    """Return the longest run of nodes that are steps of one body; nodes of kind None are never part of one."""
    contents: dict[bytes, int] = {}
    likeness = [
        None if node.loop >= 0 or kind(node) is None else _likeness(graph, node, kind(node), contents)
        for node in graph.nodes
    ]
    for start, size, nodes in _runs(likeness, least_size):
        # A step may begin at any of its nodes, so all beginnings are tried, those that pass the fewest values on first.
        for first in range(start, start + size):
            steps = (start + nodes - first) // size
            if steps >= LEAST_STEPS:
                body = _body(graph, first, size, steps)
                if body is not None:
                    return body
    return None


def _digest(data: npt.NDArray[Any]) -> bytes:
    """Return what tells contents apart; the contents themselves would be a second copy of all weights."""
    return sha256(np.ascontiguousarray(data).reshape(-1).view(np.uint8).data).digest()


def _picks(node: Node) -> bool:
    """Return whether a node is a slice of step 1, which may only select a part of its input."""
    return node.kernel == "slice" and node.params.step == (1, 1, 1, 1)


def _picks_column(graph: KernelGraph, node: Node) -> bool:
    """Return whether a node is a slice of one pixel of every row: one step of a batch."""
    return _picks(node) and graph.values[node.output].shape[0] == graph.values[node.output].shape[2] == 1


def _likeness(graph: KernelGraph, node: Node, kind: Any, contents: dict[bytes, int]) -> Any:
    """Return a key that is equal for equal nodes of different steps; None where a node cannot be part of a body."""
    output = graph.values[node.output]
    if node.merge or node.workspace or output.accumulator:
        return None
    if output.shape[:2] != (1, 1) and not _picks_column(graph, node):
        return None
    if output.data is not None:
        return None
    operands: list[Any] = []
    for operand in node.operands:
        if isinstance(operand, np.ndarray):
            operands.append(contents.setdefault(_digest(operand), len(contents)))
        elif operand is not None:
            value = graph.values[operand]
            if value.data is None and not _picks(node) and value.shape[:2] != (1, 1):
                return None
            operands.append((value.shape, value.dtype) if not _picks(node) or operand == node.output else value.dtype)
        else:
            operands.append(None)
    params = replace(node.params, first=()) if _picks(node) else node.params
    return kind, params, node.rounding, tuple(operands)


def _runs(likeness: list[Any], least_size: int) -> Iterator[tuple[int, int, int]]:
    """Return (first node, size of a step, nodes) of runs whose nodes equal those one step before, longest first."""
    found: list[tuple[int, int, int]] = []
    for size in range(least_size, MOST_BODY + 1):
        start = 0
        count = len(likeness) - size
        while start < count:
            end = start
            while end < count and likeness[end] is not None and likeness[end] == likeness[end + size]:
                end += 1
            if end - start + size >= LEAST_STEPS * size:
                found.append((start, size, end - start + size))
            start = max(end, start) + 1
    found.sort(key=lambda run: (-run[2], run[1], run[0]))
    yield from found


class _Refused(Exception):
    """These nodes are not steps of one body."""


def _body(graph: KernelGraph, first: int, size: int, steps: int) -> Body | None:
    try:
        return _check_body(graph, first, size, steps)
    except _Refused:
        return None


def _check_body(graph: KernelGraph, first: int, size: int, steps: int) -> Body:
    nodes = graph.nodes[first : first + size * steps]
    if size > 1 and not any(node.kernel in WITH_WEIGHTS for node in nodes[:size]):
        raise _Refused  # nothing is stored twice
    if len({graph.root(node.output) for node in nodes} & {graph.root(value) for value in graph.outputs}) > 1:
        raise _Refused  # one body cannot write several results of the graph
    writers: dict[int, list[int]] = {}
    for at, node in enumerate(graph.nodes):
        writers.setdefault(graph.root(node.output), []).append(at)
    alone = {root: at[0] - first for root, at in writers.items() if len(at) == 1}

    def writer_of(root: int) -> tuple[int, int] | None:
        """(step, position) of the only node that writes a root, if it is one of the run."""
        at = alone.get(root, -1)
        return divmod(at, size) if 0 <= at < size * steps else None

    others = (*graph.nodes[:first], *graph.nodes[first + size * steps :])
    outlives = {graph.root(value) for value in (*graph.outputs, *(v for node in others for v in node.inputs()))}
    picked: dict[int, Alias] = {}  # output of a slice that picks a step → where that lies
    kept = []
    for position in range(size):
        same = nodes[position::size]
        only_here = _picks(same[0]) and not any(graph.root(node.output) in outlives for node in same)
        if not only_here or not _pick_all(graph, same, writer_of, picked):
            if graph.values[same[0].output].shape[1] > 1 and (size > 1 or any(same[0].params.first)):
                raise _Refused  # single columns are not supported, only whole copies
            kept.append(position)
    earlier: dict[int, Alias] = {}  # the same of steps that were taken apart before the first
    for node in filter(_picks, graph.nodes[:first]):
        _pick_all(graph, [node], writer_of, earlier)
    uses: dict[tuple[int, int], Use] = {}
    initial: dict[int, int] = {}
    for position in kept:
        for operand, source in enumerate(nodes[position].operands):
            if not isinstance(source, int) or source == nodes[position].output:
                continue
            column = [node.operands[operand] for node in nodes[position::size]]
            read = [value for value in column if isinstance(value, int)]
            roots = [graph.root(value) for value in read]
            constants = [data for root in roots if (data := graph.values[root].data) is not None]
            if len(constants) == len(column):
                if any(data is not constants[0] and not np.array_equal(data, constants[0]) for data in constants):
                    raise _Refused
                continue
            apart = len(set(roots)) == steps and earlier.keys() >= set(roots)
            use, before = _use(graph, read, writer_of, earlier if apart else picked)
            uses[position, operand] = use
            if use.kind == "before" and not _equal(graph, initial.setdefault(use.at, before), before):
                raise _Refused
    outputs = _moving_outputs(graph, nodes, size, kept, writer_of)
    if size == 1 and not outputs:
        raise _Refused  # a loop of separate copies saves nothing
    if set(initial) & set(outputs):
        raise _Refused  # handed on in a tensor of its own is enough
    _check_kernels(nodes, kept, uses)
    _check_outside(graph, first, size, steps, writer_of)
    advances = [use.advance for use in (*uses.values(), *outputs.values()) if use.kind == "outside" and use.advance]
    if advances and min(advances) < 0 < max(advances):
        raise _Refused
    return Body(first, size, steps, kept, uses, initial, outputs, reverse=any(advance < 0 for advance in advances))


def _equal(graph: KernelGraph, one: int, other: int) -> bool:
    """Return whether two values have equal contents: several readers of an initial state may have one constant each."""
    if one == other:
        return True
    first, second = graph.values[one], graph.values[other]
    if first.data is None or second.data is None:
        return False
    return (first.shape, first.dtype) == (second.shape, second.dtype) and np.array_equal(first.data, second.data)


def _pick_all(graph: KernelGraph, column: list[Node], writer_of: Any, picked: dict[int, Alias]) -> bool:
    """Record the places of the slices at one position, if all are parts of one tensor from outside the run."""
    places: dict[int, Alias] = {}
    for node in column:
        source = node.operands[0]
        assert isinstance(source, int)
        place, output = place_of(graph, source), graph.values[node.output]
        root = graph.root(node.output)
        if writer_of(place.root) is not None or graph.values[place.root].data is not None:
            return False
        if node.output != root and not _is_all_of(graph, node.output, root):
            return False
        n, y, x, c = node.params.first
        dense = output.shape[3] * ITEM_BYTES[output.dtype]
        if output.shape[2] > 1 and place.pixel != dense:
            return False
        offset = place.offset + n * place.plane + y * place.pitch + x * place.pixel + c * ITEM_BYTES[output.dtype]
        pixel = dense if output.shape[1] == 1 else place.pitch
        places[root] = place._replace(offset=offset, pixel=pixel)
    if len({place.root for place in places.values()}) > 1:
        return False
    picked.update(places)
    return True


def _is_all_of(graph: KernelGraph, view: int, root: int) -> bool:
    """Whether a view has the bytes of its root in their order, and pixels of the same size."""
    seen, whole = graph.values[view].shape, graph.values[root].shape
    _, h, w, c = seen
    pixel = c * ITEM_BYTES[graph.values[view].dtype]
    dense = place_of(graph, view) == Alias(root, 0, h * w * pixel, w * pixel, pixel)
    return dense and whole[3] == c and math.prod(whole) == math.prod(seen)


def _use(graph: KernelGraph, column: list[Any], writer_of: Any, picked: dict[int, Alias]) -> tuple[Use, int]:
    """Return the use of one operand, and its value before the first step if a step reads it from the step before."""
    found: list[Use] = []
    for step, value in enumerate(column):
        place = place_of(graph, value)
        if place.root in picked:
            base = picked[place.root]
            dense = graph.values[place.root].shape[3] * ITEM_BYTES[graph.values[place.root].dtype]
            if base.pixel != dense and (place.pixel != dense or place.offset >= dense):
                raise _Refused
            pixel = place.pixel if base.pixel == dense else base.pixel
            place = place._replace(root=base.root, offset=base.offset + place.offset, pixel=pixel)
        maker = writer_of(place.root)
        if maker is None:
            found.append(Use("outside", place.root, place.offset, place.pixel))
        elif maker[0] == step:
            found.append(Use("inside", maker[1], place.offset, place.pixel))
        elif maker[0] == step - 1:
            found.append(Use("before", maker[1], place.offset, place.pixel))
        else:
            raise _Refused
    kinds = {use.kind for use in found[1:]}
    if len(kinds) > 1:
        raise _Refused
    if kinds == {"before"}:
        whole = found[1].offset == 0 and found[0].kind == "outside"
        if len(set(found[1:])) > 1 or not whole or graph.values[column[0]].shape != graph.values[column[1]].shape:
            raise _Refused
        return found[1], column[0]
    if found[0].kind not in kinds or len({(use.at, use.pixel) for use in found}) > 1:
        raise _Refused
    advance = found[1].offset - found[0].offset
    if any(later.offset - use.offset != advance for use, later in itertools.pairwise(found)):
        raise _Refused
    if found[0].kind == "inside" and advance:
        raise _Refused
    return found[0]._replace(advance=advance), -1


def _moving_outputs(
    graph: KernelGraph, nodes: list[Node], size: int, kept: list[int], writer_of: Any
) -> dict[int, Use]:
    """Return the outputs that are parts of a tensor which several nodes write: they must advance along it."""
    found: dict[int, Use] = {}
    for position in kept:
        places = [place_of(graph, node.output) for node in nodes[position::size]]
        if all(writer_of(place.root) is not None for place in places):
            if any(place.root != node.output for place, node in zip(places, nodes[position::size], strict=True)):
                raise _Refused
            continue
        advance = places[1].offset - places[0].offset
        steady = all(b.offset - a.offset == advance for a, b in itertools.pairwise(places))
        if len({(place.root, place.pixel) for place in places}) > 1 or not steady or not advance:
            raise _Refused
        found[position] = Use("outside", places[0].root, places[0].offset, places[0].pixel, advance)
    return found


def _check_kernels(nodes: list[Node], kept: list[int], uses: dict[tuple[int, int], Use]) -> None:
    """Only element-wise kernels read the same row in every step; a slice inside a body starts at its first row."""
    for position in kept:
        node = nodes[position]
        still = any(use.kind == "outside" and not use.advance for (at, _), use in uses.items() if at == position)
        if node.kernel in ONE_INPUT and still:
            raise _Refused
        if node.kernel == "slice" and (node.params.first[1] or node.params.step[1] != 1):
            raise _Refused


def _check_outside(graph: KernelGraph, first: int, size: int, steps: int, writer_of: Any) -> None:
    """Refuse a run whose values other nodes write. Values that are read after the loop are then stored whole."""
    inside = range(first, first + size * steps)
    if any(writer_of(graph.root(node.output)) is not None for at, node in enumerate(graph.nodes) if at not in inside):
        raise _Refused
