"""Roll equal steps into one body that the microcode's LOOP repeats.

Before:  h1 = fc(h0); y1 = add(x[1], h1); h2 = fc(y1); y2 = add(x[2], h2); …      one copy of the body per step
After:   loop over t:  h = fc(y[t-1]); y[t] = add(x[t], h)                         one body; rows are steps

A converter that unrolls a recurrent layer writes the same operators again and again, with the same weights and scales.
Each node of the body becomes one whose rows are the steps. What moves along with the steps (x) is read row by row; what a step
hands to the next (y) is one tensor, of which the body reads a row and writes the next. Steps whose numbers differ stay as
they are, so do nodes in front and behind.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from openneutron.compiler.kernels.copy import copy_node
from openneutron.compiler.l1 import ITEM_BYTES, Alias, KernelGraph, Node, RowDemand, Value
from openneutron.machine.targets import Target
from openneutron.records import dataclass

LEAST_STEPS = 3  # fewer are not worth a loop
MOST_BODY = 64  # nodes of a body: a loop's microcode stays at some kilobytes
# Kernels whose output row y needs row y of their inputs, or an input of one row that broadcasts.
_BY_ROWS = frozenset({"add", "add16", "mul", "minmax", "prelu", "squared_difference"})
_WITH_WEIGHTS = frozenset({"fully_connected", "fully_connected16"})
_ONE_INPUT = _WITH_WEIGHTS | {"lut", "lut16", "requantize", "softmax", "softmax16", "slice"}


class Place(NamedTuple):
    """Where a value of one row lies."""

    root: int
    offset: int
    plane: int
    pitch: int
    pixel: int


class Use(NamedTuple):
    """What an operand of the body is in every step: `kind` inside, before (of the step before) or outside.

    `at` is the body's node, or the root outside. `offset` is where it lies in the first step, `advance` bytes further on in
    each next one.
    """

    kind: str
    at: int
    offset: int
    pixel: int
    advance: int = 0


@dataclass
class Body:
    """A run of `steps` equal steps of `size` nodes, from node `first` on."""

    first: int
    size: int
    steps: int
    kept: list[int]  # positions of the body that stay nodes; slices that only pick a step do not
    uses: dict[tuple[int, int], Use]  # (position, operand) → what it is
    initial: dict[int, int]  # position whose value is handed on → the value before the first step
    outputs: dict[int, Use]  # position → where its output moves in a tensor that outlives the steps
    reverse: bool = False  # steps run from the last row to the first


def _place(graph: KernelGraph, value: int) -> Place:
    v = graph.values[value]
    if v.alias is not None:
        return Place(*(getattr(v.alias, name) for name in ("root", "offset", "plane", "pitch", "pixel")))
    _, h, w, c = v.shape
    pixel = c * ITEM_BYTES[v.dtype]
    return Place(value, 0, h * w * pixel, w * pixel, pixel)


def _picks(node: Node) -> bool:
    """A slice without steps: it may only name a part of its input."""
    return node.kernel == "slice" and node.params.step == (1, 1, 1, 1)


def _likeness(graph: KernelGraph, node: Node, contents: dict[bytes, int]) -> Any:
    """What equal nodes of different steps have in common; None where a node cannot be part of a body."""
    output = graph.values[node.output]
    if node.merge or node.workspace or output.accumulator:
        return None
    if output.shape[:2] != (1, 1) or output.data is not None:
        return None
    operands: list[Any] = []
    for operand in node.operands:
        if isinstance(operand, np.ndarray):
            operands.append(contents.setdefault(operand.tobytes(), len(contents)))
        elif operand is not None:
            value = graph.values[operand]
            if value.data is None and not _picks(node) and value.shape[:2] != (1, 1):
                return None
            operands.append((value.shape, value.dtype) if not _picks(node) or operand == node.output else value.dtype)
        else:
            operands.append(None)
    params = replace(node.params, first=()) if _picks(node) else node.params
    return node.kernel, params, node.rounding, tuple(operands)


def _runs(likeness: list[Any], least_size: int) -> Iterator[tuple[int, int, int]]:
    """(first node, size of a step, nodes) of runs in which every node is like the one a step before, longest first."""
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


def roll_steps(graph: KernelGraph, target: Target) -> int:
    """Replace runs of equal steps by loops, the longest first; returns how many."""
    return roll(graph, lambda node: node.kernel in _BY_ROWS | _ONE_INPUT, least_size=2)


def roll(graph: KernelGraph, fits: Callable[[Node], bool], least_size: int) -> int:
    """Roll runs of nodes that fit, in steps of at least `least_size`; returns how many loops were made."""
    rolled = 0
    while (body := _find(graph, fits, least_size)) is not None:
        _replace_steps(graph, body, 1 + max(node.loop for node in graph.nodes))
        rolled += 1
    return rolled


def _find(graph: KernelGraph, fits: Callable[[Node], bool], least_size: int) -> Body | None:
    contents: dict[bytes, int] = {}
    likeness = [_likeness(graph, node, contents) if node.loop < 0 and fits(node) else None for node in graph.nodes]
    for start, size, nodes in _runs(likeness, least_size):
        # A step may begin at any of its nodes; what hands on the least is tried with the others, in order.
        for first in range(start, start + size):
            steps = (start + nodes - first) // size
            if steps >= LEAST_STEPS:
                body = _body(graph, first, size, steps)
                if body is not None:
                    return body
    return None


class _Refused(Exception):
    """These nodes are not steps of one body."""


def _body(graph: KernelGraph, first: int, size: int, steps: int) -> Body | None:
    try:
        return _checked(graph, first, size, steps)
    except _Refused:
        return None


def _checked(graph: KernelGraph, first: int, size: int, steps: int) -> Body:
    nodes = graph.nodes[first : first + size * steps]
    if size > 1 and not any(node.kernel in _WITH_WEIGHTS for node in nodes[:size]):
        raise _Refused  # nothing is stored twice
    if len({graph.root(node.output) for node in nodes} & {graph.root(value) for value in graph.outputs}) > 1:
        raise _Refused  # one body cannot write several results of the graph
    writers: dict[int, list[int]] = {}
    for at, node in enumerate(graph.nodes):
        writers.setdefault(graph.root(node.output), []).append(at)
    alone = {root: at[0] - first for root, at in writers.items() if len(at) == 1}

    def made(root: int) -> tuple[int, int] | None:
        """(step, position) of the only node that writes a root, if it is one of the run."""
        at = alone.get(root, -1)
        return divmod(at, size) if 0 <= at < size * steps else None

    others = (*graph.nodes[:first], *graph.nodes[first + size * steps :])
    outlives = {graph.root(value) for value in (*graph.outputs, *(v for node in others for v in node.inputs()))}
    picked: dict[int, Place] = {}  # output of a slice that picks a step → where that lies
    kept = []
    for position in range(size):
        column = nodes[position::size]
        only_here = _picks(column[0]) and not any(node.output in outlives for node in column)
        if not only_here or not _pick_all(graph, column, made, picked):
            kept.append(position)
    uses: dict[tuple[int, int], Use] = {}
    initial: dict[int, int] = {}
    for position in kept:
        for operand, source in enumerate(nodes[position].operands):
            if not isinstance(source, int) or source == nodes[position].output:
                continue
            read = [node.operands[operand] for node in nodes[position::size]]
            constants = [graph.values[graph.root(value)].data for value in read if isinstance(value, int)]
            if all(data is not None for data in constants):
                if any(data is not constants[0] for data in constants):
                    raise _Refused
                continue
            use, before = _use(graph, read, made, picked)
            uses[position, operand] = use
            if use.kind == "before" and initial.setdefault(use.at, before) != before:
                raise _Refused
    outputs = _moving_outputs(graph, nodes, size, kept, made)
    if size == 1 and not outputs:
        raise _Refused  # copies that stay apart gain nothing from a loop
    if set(initial) & set(outputs):
        raise _Refused  # handed on in a tensor of its own is enough
    _check_kernels(nodes, kept, uses)
    _check_outside(graph, first, size, steps, made)
    advances = [use.advance for use in (*uses.values(), *outputs.values()) if use.kind == "outside" and use.advance]
    if advances and min(advances) < 0 < max(advances):
        raise _Refused
    return Body(first, size, steps, kept, uses, initial, outputs, reverse=any(advance < 0 for advance in advances))


def _pick_all(graph: KernelGraph, column: list[Node], made: Any, picked: dict[int, Place]) -> bool:
    """Note where the slices of one position lie, if all of them name parts of one tensor from outside the run."""
    places: dict[int, Place] = {}
    for node in column:
        source = node.operands[0]
        assert isinstance(source, int)
        place, output = _place(graph, source), graph.values[node.output]
        if made(place.root) is not None or graph.values[place.root].data is not None or output.alias is not None:
            return False
        n, y, x, c = node.params.first
        dense = output.shape[3] * ITEM_BYTES[output.dtype]
        if output.shape[2] > 1 and place.pixel != dense:
            return False
        offset = place.offset + n * place.plane + y * place.pitch + x * place.pixel + c * ITEM_BYTES[output.dtype]
        places[node.output] = place._replace(offset=offset)
    if len({place.root for place in places.values()}) > 1:
        return False
    picked.update(places)
    return True


def _use(graph: KernelGraph, column: list[Any], made: Any, picked: dict[int, Place]) -> tuple[Use, int]:
    """What one operand is in every step, and where it is handed on, its value before the first."""
    found: list[Use] = []
    for step, value in enumerate(column):
        place = _place(graph, value)
        if place.root in picked:
            base = picked[place.root]
            place = place._replace(root=base.root, offset=base.offset + place.offset)
        maker = made(place.root)
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


def _moving_outputs(graph: KernelGraph, nodes: list[Node], size: int, kept: list[int], made: Any) -> dict[int, Use]:
    """Outputs that are parts of a tensor which several nodes write: they must move along it."""
    found: dict[int, Use] = {}
    for position in kept:
        places = [_place(graph, node.output) for node in nodes[position::size]]
        if all(made(place.root) is not None for place in places):
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
        if node.kernel in _ONE_INPUT and still:
            raise _Refused
        if node.kernel == "slice" and (node.params.first[1] or node.params.step[1] != 1):
            raise _Refused


def _check_outside(graph: KernelGraph, first: int, size: int, steps: int, made: Any) -> None:
    """Nobody else writes what the steps make. What is read behind them, of whatever step, is then stored whole."""
    inside = range(first, first + size * steps)
    if any(made(graph.root(node.output)) is not None for at, node in enumerate(graph.nodes) if at not in inside):
        raise _Refused


def _replace_steps(graph: KernelGraph, body: Body, number: int) -> None:
    nodes = graph.nodes[body.first : body.first + body.size * body.steps]
    steps = body.steps
    made: dict[int, int] = {}  # position → value of all steps
    read: dict[int, int] = {}  # position that is handed on → the same one step earlier
    before: list[Node] = []
    for position in body.kept:
        one = graph.values[nodes[position].output]
        _, _, w, c = one.shape
        pixel = c * ITEM_BYTES[one.dtype]
        row = w * pixel
        name = f"{one.name} ({steps} steps)"
        made_of = replace(one, name=name, shape=(1, steps, w, c), tensor=-1, alias=None)
        if position in body.outputs:
            use = body.outputs[position]
            alias = Alias(use.at, _start(use, steps), abs(use.advance) * steps, abs(use.advance), use.pixel)
            made[position] = graph.add_value(replace(made_of, alias=alias))
        elif position in body.initial:
            whole = graph.add_value(replace(made_of, name=f"{name}, and before", shape=(1, steps + 1, w, c)))
            early, late = (row, 0) if body.reverse else (0, row)
            made[position] = graph.add_value(replace(made_of, alias=Alias(whole, late, steps * row, row, pixel)))
            read[position] = graph.add_value(replace(made_of, alias=Alias(whole, early, steps * row, row, pixel)))
            start = steps * row if body.reverse else 0
            place = Alias(whole, start, row, row, pixel)
            first = graph.add_value(replace(made_of, name=f"{name}, at first", shape=(1, 1, w, c), alias=place))
            copied = copy_node(graph, body.initial[position], first)
            copied.sources = nodes[position].sources
            before.append(copied)
        else:
            made[position] = graph.add_value(made_of)
    last = body.first + body.size * steps
    others = [*graph.nodes[: body.first], *graph.nodes[last:]]
    live = {*graph.outputs, *(value for node in others for value in node.inputs())}
    rolled = [_rolled(graph, body, nodes, position, made, read, number) for position in body.kept]
    for position in body.kept:
        if position not in body.outputs:
            column = [node.output for node in nodes[position :: body.size]]
            _hand_over(graph, column[::-1] if body.reverse else column, made[position], live)
    graph.nodes = [*graph.nodes[: body.first], *before, *rolled, *graph.nodes[last:]]


def _start(use: Use, steps: int) -> int:
    """Where the first row lies: steps that go backwards begin at the last."""
    return use.offset + (steps - 1) * use.advance if use.advance < 0 else use.offset


def _rolled(
    graph: KernelGraph, body: Body, nodes: list[Node], position: int, made: dict[int, int], read: dict[int, int],
    number: int,
) -> Node:  # fmt: skip
    """The node of all steps."""
    node = nodes[position]
    operands: list[Any] = list(node.operands)
    demand: dict[int, RowDemand] = {}
    for operand, source in enumerate(node.operands):
        if isinstance(source, int) and source == node.output:
            operands[operand] = made[position]
        elif (position, operand) in body.uses:
            use = body.uses[position, operand]
            if use.kind != "outside" or use.advance:
                assert isinstance(source, int)
                operands[operand] = _rows(graph, graph.values[source], use, body, made, read)
                demand[operand] = RowDemand()
    column = nodes[position :: body.size]
    return replace(
        node, operands=operands, output=made[position], demand=demand, macs=node.macs * body.steps,
        sources=tuple(dict.fromkeys(source for one in column for source in one.sources)), loop=number,
        upward=body.reverse, downward=True, notes=(*node.notes, f"{body.steps} equal steps as one"),
    )  # fmt: skip


def _rows(graph: KernelGraph, one: Value, use: Use, body: Body, made: dict[int, int], read: dict[int, int]) -> int:
    """An operand of all steps: the value that a node of the body makes, a part of it, or rows of a tensor outside."""
    _, _, w, c = one.shape
    shape = (1, body.steps, w, c)
    if use.kind == "outside":
        pitch = abs(use.advance)
        alias = Alias(use.at, _start(use, body.steps), pitch * body.steps, pitch, use.pixel)
        return graph.add_value(replace(one, shape=shape, tensor=-1, alias=alias))
    whole = made[use.at] if use.kind == "inside" else read[use.at]
    if graph.values[whole].shape == shape and use.offset == 0:
        return whole
    place = _place(graph, whole)
    alias = Alias(place.root, place.offset + use.offset, place.plane, place.pitch, use.pixel)
    return graph.add_value(replace(one, shape=shape, tensor=-1, alias=alias))


def _hand_over(graph: KernelGraph, column: list[int], made: int, live: set[int]) -> None:
    """What each step made is a row of what all steps make, for everyone who reads it later: the `live` values."""
    place = _place(graph, made)
    offsets = {value: place.offset + row * place.pitch for row, value in enumerate(column)}
    for index in sorted(live):
        value = graph.values[index]
        if index in offsets:
            _, _, w, c = value.shape
            pixel = c * ITEM_BYTES[value.dtype]
            value.alias = Alias(place.root, offsets[index], w * pixel, w * pixel, pixel)
        elif value.alias is not None and value.alias.root in offsets:
            offset = offsets[value.alias.root] + value.alias.offset
            value.alias = replace(value.alias, root=place.root, offset=offset)
