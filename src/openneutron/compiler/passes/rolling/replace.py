"""Replaces repeated steps by one loop body; the row index counts steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from openneutron.compiler.kernels.copy import copy_node
from openneutron.compiler.l1 import ITEM_BYTES, Alias, KernelGraph, Node, RowDemand, Value
from openneutron.compiler.passes.rolling.body import Body, Use, place_of, row_of


def replace_steps(graph: KernelGraph, body: Body, number: int) -> None:
    """Replace the steps of a body in place; `number` is the number of the loop."""
    nodes = graph.nodes[body.first : body.first + body.size * body.steps]
    steps = body.steps
    made: dict[int, int] = {}  # position → value of all steps
    read: dict[int, int] = {}  # position that is handed on → the same one step earlier
    before: list[Node] = []
    for position in body.kept:
        one = graph.values[nodes[position].output]
        w, c = row_of(one.shape)
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
    rolled = [_roll_node(graph, body, nodes, position, made, read, number) for position in body.kept]
    for position in body.kept:
        if position not in body.outputs:
            column = [node.output for node in nodes[position :: body.size]]
            _hand_over(graph, column[::-1] if body.reverse else column, made[position], live)
    graph.nodes = [*graph.nodes[: body.first], *before, *rolled, *graph.nodes[last:]]


def _start(use: Use, steps: int) -> int:
    """Return the offset of the first row: backward steps begin at the last."""
    return use.offset + (steps - 1) * use.advance if use.advance < 0 else use.offset


def _roll_node(
    graph: KernelGraph, body: Body, nodes: list[Node], position: int, made: dict[int, int], read: dict[int, int],
    number: int,
) -> Node:  # fmt: skip
    """Return the node that computes all steps of one position."""
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
    """Return an operand for all steps: a value that the body makes, a part of it, or rows of a tensor outside."""
    w, c = row_of(one.shape)
    shape = (1, body.steps, w, c)
    if use.kind == "outside":
        pitch = abs(use.advance)
        alias = Alias(use.at, _start(use, body.steps), pitch * body.steps, pitch, use.pixel)
        return graph.add_value(replace(one, shape=shape, tensor=-1, alias=alias))
    whole = made[use.at] if use.kind == "inside" else read[use.at]
    if graph.values[whole].shape == shape and use.offset == 0:
        return whole
    place = place_of(graph, whole)
    alias = Alias(place.root, place.offset + use.offset, place.plane, place.pitch, use.pixel)
    return graph.add_value(replace(one, shape=shape, tensor=-1, alias=alias))


def _hand_over(graph: KernelGraph, column: list[int], made: int, live: set[int]) -> None:
    """Make each step's value an alias of a row of the loop's value, for later readers (the `live` values)."""
    place = place_of(graph, made)
    offsets = {value: place.offset + row * place.pitch for row, value in enumerate(column)}
    for index in sorted(live):
        value = graph.values[index]
        if index in offsets:
            _, _, w, c = value.shape
            pixel = c * ITEM_BYTES[value.dtype]
            value.alias = Alias(place.root, offsets[index], w * pixel, w * pixel, pixel)
        elif value.alias is not None and value.alias.root in offsets:
            offset = offsets[value.alias.root] + value.alias.offset
            value.alias = value.alias._replace(root=place.root, offset=offset)
