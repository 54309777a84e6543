"""Plants one fault behind one stage of the compiler; a seeded generator draws it."""

from __future__ import annotations

import dataclasses
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from openneutron.compiler import l2, pipeline
from openneutron.compiler.l1 import KernelGraph
from openneutron.microcode import instructions as m
from openneutron.microcode.storage.words import pack_words, unpack_words
from openneutron.microcode.table import Region

STAGES = ("legalize", "fuse", "schedule", "allocate", "emit", "loops", "state", "store", "encode")
_OPERAND = ("offset", "plane", "pitch", "pixel", "ring", "batch", "height", "width", "channels")
_STEPS = (-16, -4, -2, -1, 1, 2, 4, 16)


class Missed(Exception):
    """The drawn fault is impossible here."""


Random = np.random.Generator


def _pick(rng: Random, items: Any) -> Any:
    if not len(items):
        raise Missed
    return items[int(rng.integers(len(items)))]


def _node(rng: Random, graph: KernelGraph) -> str:
    """Break one node of L1: a parameter, a constant, the order of operands, the rounding."""
    at = int(rng.integers(len(graph.nodes)))
    node = graph.nodes[at]
    kind = _pick(rng, ("parameter", "parameter", "constant", "stale constant", "operands"))
    if kind == "parameter":
        field = _pick(rng, [f for f in dataclasses.fields(node.params) if f.metadata["size"] == 1])
        value = getattr(node.params, field.name) + int(_pick(rng, _STEPS))
        node.params = dataclasses.replace(node.params, **{field.name: value})
        return f"{node.kernel}.{field.name}"
    arrays = [p for p, o in enumerate(node.operands) if isinstance(o, np.ndarray)]
    if kind == "constant":
        position = _pick(rng, arrays)
        data = node.operands[position].copy()
        data[int(rng.integers(data.size))] ^= 1 << int(rng.integers(8))
        node.operands[position] = data
        return f"{node.kernel} constant {position}"
    if kind == "stale constant":
        position = _pick(rng, arrays)
        others = [
            o for other in graph.nodes for o in other.operands
            if isinstance(o, np.ndarray) and o.size == node.operands[position].size and o is not node.operands[position]
        ]  # fmt: skip
        node.operands[position] = _pick(rng, others) if others else np.roll(node.operands[position], 7)
        return f"{node.kernel} constant {position} of another"
    values = [p for p, o in enumerate(node.operands) if isinstance(o, int) and o != node.output]
    position = _pick(rng, values)
    same = [
        v for v, value in enumerate(graph.values)
        if v != node.operands[position] and value.shape == graph.values[node.operands[position]].shape
        and value.dtype is graph.values[node.operands[position]].dtype and value.alias is None
        and (v in graph.inputs or any(other.output == v for other in graph.nodes[:at]))
    ]  # fmt: skip
    node.operands[position] = _pick(rng, same)
    return f"{node.kernel} operand {position}"


def _change_field(rng: Random, record: Any, names: tuple[str, ...]) -> tuple[Any, str]:
    name = _pick(rng, names)
    change = {name: getattr(record, name) + int(_pick(rng, _STEPS))}
    return record._replace(**change) if isinstance(record, tuple) else dataclasses.replace(record, **change), name


def _call(rng: Random, call: Any) -> tuple[Any, str]:
    kind = _pick(rng, ("rows", "operand", "operand", "operand", "swap"))
    if kind == "rows":
        return _change_field(rng, call, ("first_row", "rows", "row_step"))
    present = [p for p, o in enumerate(call.operands) if o is not None and o.channels]
    operands = list(call.operands)
    position = _pick(rng, present)
    if kind == "operand":
        operands[position], name = _change_field(rng, operands[position], _OPERAND)
        return dataclasses.replace(call, operands=tuple(operands)), f"operand.{name}"
    other = _pick(rng, [p for p in present if p != position])
    operands[position], operands[other] = operands[other], operands[position]
    return dataclasses.replace(call, operands=tuple(operands)), "swapped operands"


def _list(rng: Random, items: list[Any], call: Any, dma: Any, wait: Any, loop: Any) -> str:
    """Break one instruction of a list of tasks, in L2 or in microcode."""
    at = int(rng.integers(len(items)))
    item = items[at]
    kind = _pick(rng, ("this", "this", "this", "drop", "twice", "swap"))
    if kind == "drop":
        del items[at]
        return f"dropped {type(item).__name__.lower()}"
    if kind == "twice":
        items.insert(at, item)
        return f"repeated {type(item).__name__.lower()}"
    if kind == "swap":
        if at + 1 == len(items):
            raise Missed
        items[at], items[at + 1] = items[at + 1], items[at]
        return "swapped instructions"
    if isinstance(item, loop):
        if rng.integers(3) == 0:
            items[at] = dataclasses.replace(item, iterations=item.iterations + int(_pick(rng, (-1, 1))))
            return "iterations"
        body = list(item.body)
        what = _list(rng, body, call, dma, wait, loop)
        items[at] = dataclasses.replace(item, body=tuple(body))
        return f"loop: {what}"
    if isinstance(item, call):
        items[at], what = _call(rng, item)
        return what
    if isinstance(item, dma):
        items[at], what = _change_field(rng, item, ("source_offset", "target_offset", "bytes", "channel"))
        return f"copy.{what}"
    items[at] = dataclasses.replace(item, channel=item.channel + 1)
    return "wait.channel"


def _tasks(rng: Random, tasks: l2.TaskList) -> str:
    return _list(rng, tasks.tasks, l2.Call, l2.Dma, l2.Wait, l2.Loop)


def _offsets(rng: Random, tasks: l2.TaskList) -> str:
    buffer = _pick(rng, [b for b in tasks.buffers if b.first >= 0 and b.size])
    buffer.offset = max(buffer.offset + int(_pick(rng, (-256, -64, -16, 16, 64, 256))), 0)
    return f"offset of {buffer.region.name.lower()}"


def _program(rng: Random, program: m.Program) -> tuple[m.Program, str]:
    if rng.integers(8) == 0:
        weights = bytearray(program.weights)
        weights[int(rng.integers(len(weights)))] ^= 1 << int(rng.integers(8))
        return dataclasses.replace(program, weights=bytes(weights)), "weights"
    items = list(program.instructions)
    what = _list(rng, items, m.Call, m.Dma, m.Wait, m.Loop)
    return dataclasses.replace(program, instructions=tuple(items)), what


def _loops(rng: Random, program: m.Program) -> tuple[m.Program, str]:
    """Break a loop: how often it runs, or an instruction of its body."""
    items = list(program.instructions)
    at = _pick(rng, [at for at, item in enumerate(items) if isinstance(item, m.Loop)])
    one = [items[at]]
    what = _list(rng, one, m.Call, m.Dma, m.Wait, m.Loop)
    items[at : at + 1] = one
    return dataclasses.replace(program, instructions=tuple(items)), what


def _state(rng: Random, program: m.Program) -> tuple[m.Program, str]:
    """Break a state: its first contents, the order of slots, or the slot that an instruction uses."""
    rows = list(program.states)
    at = int(rng.integers(len(rows))) if rows else _pick(rng, rows)
    kind = _pick(rng, ("first contents", "first contents", "rows", "slot", "slot", "slot"))
    if kind == "rows":
        other = _pick(rng, [one for one in range(len(rows)) if one != at])
        a, b = rows[at], rows[other]
        rows[at] = a._replace(source=b.source, fill=b.fill)
        rows[other] = b._replace(source=a.source, fill=a.fill)
        return dataclasses.replace(program, states=tuple(rows)), "first contents of two states swapped"
    if kind == "first contents":
        name, step = ("fill", 1) if rows[at].source == 0xFFFFFFFF else ("source", 16)
        rows[at] = rows[at]._replace(**{name: getattr(rows[at], name) + step})
        return dataclasses.replace(program, states=tuple(rows)), f"state.{name}"
    items, moved = list(program.instructions), [row.offset for row in rows] + [16, 32, 64]
    places = [
        (number, position) for number, item in enumerate(items) if isinstance(item, m.Call)
        for position, o in enumerate(item.operands) if o is not None and o.channels and o.region is Region.STATE
    ]  # fmt: skip
    number, position = _pick(rng, places)
    call = items[number]
    operands = list(call.operands)
    offset = int(_pick(rng, [one for one in moved if one != operands[position].offset]))
    operands[position] = operands[position]._replace(offset=offset)
    items[number] = dataclasses.replace(call, operands=tuple(operands))
    return dataclasses.replace(program, instructions=tuple(items)), "slot of a state"


def _storage(rng: Random, blocks: tuple[bytes, bytes], program: m.Program) -> tuple[tuple[bytes, bytes], str]:
    """Break stored constants: a record, a code's description, sizes of streams, streams, or their order."""
    block, weights = bytearray(blocks[0]), bytearray(blocks[1])
    at, count = struct.unpack_from("<2I", block, 92)
    records, place = [], 0
    for _ in range(count):
        words, behind = unpack_words(bytes(block), at, 7)
        records.append((at, behind, words, place))
        place += -(-words[2] // 4) * 4
        at = behind
    start, end, words, first = _pick(rng, records)
    size = words[2]
    kind = _pick(rng, ("record", "head", "head", "anywhere", "halves", "sections"))
    if kind == "record":
        number = int(rng.integers(7))
        words = list(words)
        words[number] += int(_pick(rng, _STEPS)) << (8 * int(rng.integers(4)) if number == 0 else 0)
        made = pack_words(words)
        if len(made) != end - start:
            raise Missed
        block[start:end] = made
    elif kind in ("head", "anywhere"):
        weights[first + int(rng.integers(min(size, 40) if kind == "head" else size))] ^= 1 << int(rng.integers(8))
    elif kind == "halves":
        half = size // 2
        weights[first : first + 2 * half] = weights[first + half : first + 2 * half] + weights[first : first + half]
    else:
        _, _, theirs, other = _pick(rng, [one for one in records if one[2][2] == size and one[3] != first])
        a, b = weights[first : first + size], weights[other : other + size]
        weights[first : first + size], weights[other : other + size] = b, a
        assert theirs[2] == size
    return _seal(block, weights, program), f"coded constants: {kind}"


def _seal(block: bytearray, weights: bytearray, program: m.Program) -> tuple[bytes, bytes]:
    """Return both blocks with a correct checksum."""
    (identity,) = struct.unpack_from("<I", block, 16)
    struct.pack_into("<I", block, identity + 28, 0)
    struct.pack_into("<I", block, identity + 28, zlib.crc32(program.kernels, zlib.crc32(weights, zlib.crc32(block))))
    return bytes(block), bytes(weights)


def _block(rng: Random, blocks: tuple[bytes, bytes], program: m.Program) -> tuple[tuple[bytes, bytes], str]:
    """Change one word of the code and correct the checksum."""
    block, weights = blocks
    code, size = (struct.unpack_from("<I", block, at)[0] for at in (64, 68))
    at = code + 4 * int(rng.integers(size // 4))
    made = bytearray(block)
    (word,) = struct.unpack_from("<i", made, at)
    struct.pack_into("<I", made, at, (word + int(_pick(rng, _STEPS))) & 0xFFFFFFFF)
    return _seal(made, bytearray(weights), program), "a word of the code"


@contextmanager
def plant_fault(stage: str, rng: Random) -> Iterator[list[str]]:
    """Break compiles inside this context behind `stage`; the list receives a description of the fault."""
    said: list[str] = []

    def after(name: str, act: Callable[[Any, tuple[Any, ...]], Any]) -> Any:
        original = getattr(pipeline, name)

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            return made if said else act(made, args)

        return patch.object(pipeline, name, wrapper)

    def on_graph(made: Any, args: tuple[Any, ...]) -> Any:
        said.append(_node(rng, made if stage == "legalize" else args[0]))
        return made

    def on_plan(made: Any, args: tuple[Any, ...]) -> Any:
        said.append((_offsets if stage == "allocate" else _tasks)(rng, made.tasks))
        return made

    def on_program(made: Any, args: tuple[Any, ...]) -> Any:
        broken, what = {"emit": _program, "loops": _loops, "state": _state}[stage](rng, made)
        said.append(what)
        return broken

    def on_block(made: Any, args: tuple[Any, ...]) -> Any:
        broken, what = (_storage if stage == "store" else _block)(rng, made, args[0])
        said.append(what)
        return broken

    places = {
        "legalize": ("legalize", on_graph), "fuse": ("fuse", on_graph), "schedule": ("plan", on_plan),
        "allocate": ("plan", on_plan), "emit": ("emit", on_program), "loops": ("emit", on_program),
        "state": ("emit", on_program), "store": ("encode_blocks", on_block), "encode": ("encode_blocks", on_block),
    }  # fmt: skip
    with after(*places[stage]):
        yield said
