"""The drawing of a NeutronGraph's microcode: one node per kernel with its calls, buffers and addresses.

Example:
    >>> [node.label for node in draw_program(program, "NeutronGraph 0").nodes]
    ['input 0', 'conv2d', 'max_pool2d', 'output 0']
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.compiler.back.predict import predict
from openneutron.compiler.l1 import ITEM_BYTES
from openneutron.explore.drawing import Drawing, Edge, Node, Overlay
from openneutron.machine import targets
from openneutron.microcode import abi
from openneutron.microcode.instructions import ABSENT, Call, Dma, Loop, Operand, Program
from openneutron.microcode.table import Region
from openneutron.microcode.walk import output_of, steps

# Following more takes seconds and gigabytes; then nodes have neither edges nor cycles, and the drawing says so.
MOST_STEPS, MOST_BYTES = 1 << 17, 1 << 27
_MOST_PLACES = 8  # lines about where an operand lies
_NOBODY = -1
_FIRST_INPUT = -2  # marks of graph inputs: this one and those below it
_CONSTANT = (Region.WEIGHTS, Region.PREFETCH)

Marks = npt.NDArray[np.int32]


@dataclass
class _Node:
    """All calls of one L1 node."""

    kernel: str
    first: Call
    calls: int = 0
    places: dict[str, dict[str, None]] = field(default_factory=dict)  # role → distinct descriptions, in order
    reads: tuple[int, ...] = ()


def draw_program(program: Program, name: str, *, labels: dict[int, str] | None = None) -> Drawing:
    """Return the drawing of a decoded program; `labels` are layers' names by node, where they are known."""
    followed = program.step_count <= MOST_STEPS and _bytes_marked(program) <= MOST_BYTES
    found: dict[int, _Node] = {}
    last: dict[int, int] = {}
    for at, (call, times) in enumerate(_calls(program, followed)):
        if call is not None:
            node = found.setdefault(call.tag, _Node(abi.by_id(call.kernel).name, call))
            node.calls += times
            last[call.tag] = at
            _note_places(node, call)
    ends = _follow(program, found, last) if followed else {}
    nodes = [
        Node(f"input {row.index}", f"input {row.index}", outputs=(_shape(row),)) for row in program.tensors if not row.is_output
    ]  # fmt: skip
    nodes += [
        Node(
            str(tag),
            node.kernel,
            attributes=_attributes(node, (labels or {}).get(tag, "")),
            edges=tuple(Edge(_id(source), input=at) for at, source in enumerate(node.reads)),
            outputs=({"tensor_shape": _sizes(output_of(node.first)), "address": _place(output_of(node.first))},),
        )
        for tag, node in found.items()
    ]
    for row in (row for row in program.tensors if row.is_output):
        edges = tuple(Edge(_id(source), input=at) for at, source in enumerate(ends.get(row.index, ())))
        nodes.append(Node(f"output {row.index}", f"output {row.index}", attributes=_shape(row), edges=edges))
    return Drawing(name, tuple(nodes), _facts(program, followed), _overlays(program, found, followed))


def _calls(program: Program, executed: bool) -> Iterable[tuple[Call | None, int]]:
    """Yield each executed step, a copy as None; or, without `executed`, each call in the file and how often it is repeated."""
    if executed:
        for step, _, _ in steps(program):
            yield (step if isinstance(step, Call) else None), 1
        return
    for item in program.instructions:
        times = item.iterations if isinstance(item, Loop) else 1
        for one in item.body if isinstance(item, Loop) else (item,):
            yield (one if isinstance(one, Call) else None), times


def _overlays(program: Program, found: dict[int, _Node], followed: bool) -> tuple[Overlay, ...]:
    sizes = {str(tag): float(_bytes(output_of(node.first))) for tag, node in found.items()}
    memory = Overlay("output bytes", "cost", sizes)
    if program.target not in targets.names() or not followed:
        return (memory,)
    cycles: dict[str, float] = {str(tag): 0.0 for tag in found}
    for event in predict(program, targets.load(program.target))[0]:
        if event.lane == "array":
            cycles[str(event.node)] += event.end - event.start
    return Overlay("cycles", "cost", cycles), memory


def _facts(program: Program, followed: bool) -> dict[str, str]:
    known = {
        "target": program.target,
        "calls": f"{program.call_count:,}",
        "scratch": f"{program.scratch_bytes:,} bytes",
        "prefetch": f"{program.prefetch_bytes:,} bytes",
        "weights": f"{len(program.weights):,} bytes, plain",
    }
    if not followed:
        known["edges and cycles"] = (
            f"left out: {program.step_count:,} calls and copies on {_bytes_marked(program):,} bytes; "
            f"they are followed up to {MOST_STEPS:,} on {MOST_BYTES:,}"
        )
    return known


def _attributes(node: _Node, label: str) -> dict[str, str]:
    params = {f.name: str(getattr(node.first.params, f.name)) for f in fields(node.first.params)}
    places = {}
    for role, known in node.places.items():
        more = len(known) - _MOST_PLACES
        places[role] = "; ".join([*known][:_MOST_PLACES]) + (f"; and {more} more" if more > 0 else "")
    return {**({"layer": label} if label else {}), "calls": f"{node.calls:,}", **places, **params}


def _note_places(node: _Node, call: Call) -> None:
    roles = (role.rstrip("?") for role in abi.by_id(call.kernel).operands)
    for role, operand in zip(roles, call.operands, strict=True):
        if operand != ABSENT:
            node.places.setdefault(role, {})[f"{_place(operand)}, {_sizes(operand)} {operand.dtype.name.lower()}"] = (
                None
            )


def _place(operand: Operand) -> str:
    index = str(operand.index) if operand.region in (Region.INPUT, Region.OUTPUT) else ""
    ring = f" (a ring of {operand.ring} rows)" if operand.ring != operand.height else ""
    return f"{operand.region.name.lower()}{index}+{operand.offset}{ring}"


def _sizes(operand: Operand) -> str:
    return f"{operand.batch}×{operand.height}×{operand.width}×{operand.channels}"


def _bytes(operand: Operand) -> int:
    return operand.batch * operand.ring * operand.width * operand.channels * ITEM_BYTES[operand.dtype]


def _shape(row: Any) -> dict[str, str]:
    return {"tensor_shape": "×".join(map(str, row.shape)), "type": row.dtype.name.lower(), "bytes": f"{row.bytes:,}"}


def _id(mark: int) -> str:
    return f"input {_FIRST_INPUT - mark}" if mark <= _FIRST_INPUT else str(mark)


def _follow(program: Program, found: dict[int, _Node], last: dict[int, int]) -> dict[int, tuple[int, ...]]:
    """Fill in which nodes each node reads, and return those that wrote each output.

    Every byte is marked with the node that wrote it last. A node's inputs are read off before its last call, when all rows that
    it reads are there; what later nodes have written over rows that are not read any more does not count.
    """
    memory = _memory(program)
    for at, (step, first, end) in enumerate(steps(program)):
        if isinstance(step, Dma):
            _copy(memory, step)
            continue
        if at == last[step.tag]:
            writers = {
                mark
                for role, operand in zip(abi.by_id(step.kernel).operands, step.operands, strict=True)
                if role != "output" and operand != ABSENT and operand.region not in _CONSTANT
                for mark in _marks(memory, operand)
            }
            found[step.tag].reads = tuple(sorted(one for one in writers if one != _NOBODY and one < step.tag))
        _write(memory, output_of(step), first, end, step.tag)
    return {
        row.index: tuple(sorted({*map(int, np.unique(memory[Region.OUTPUT, row.index]))} - {_NOBODY}))
        for row in program.tensors
        if row.is_output
    }


def _bytes_marked(program: Program) -> int:
    held = program.scratch_bytes + program.prefetch_bytes + program.tcm_bytes + program.state_bytes
    return held + sum(row.bytes for row in program.tensors)


def _memory(program: Program) -> dict[tuple[Region, int], Marks]:
    sizes = {
        (Region.SCRATCH, 0): program.scratch_bytes, (Region.PREFETCH, 0): program.prefetch_bytes,
        (Region.TCM, 0): program.tcm_bytes, (Region.STATE, 0): program.state_bytes,
    }  # fmt: skip
    made = {place: np.full(size, _NOBODY, np.int32) for place, size in sizes.items()}
    for row in program.tensors:
        region = Region.OUTPUT if row.is_output else Region.INPUT
        made[region, row.index] = np.full(row.bytes, _NOBODY if row.is_output else _FIRST_INPUT - row.index, np.int32)
    return made


def _copy(memory: dict[tuple[Region, int], Marks], step: Dma) -> None:
    source = memory.get((step.source_region, step.source_index if step.source_region is Region.INPUT else 0))
    target = memory.get((step.target_region, 0))
    if target is None:
        return
    into = slice(step.target_offset, step.target_offset + step.bytes)
    # Constants, which nobody wrote, arrive from WEIGHTS.
    if source is None:
        target[into] = _NOBODY
        return
    moved = source[step.source_offset : step.source_offset + len(target[into])]
    target[step.target_offset : step.target_offset + len(moved)] = moved


def _marks(memory: dict[tuple[Region, int], Marks], operand: Operand) -> Iterable[int]:
    held = memory.get((operand.region, operand.index))
    if held is None:
        return []
    found: set[int] = set()
    for start in _rows(operand, 0, min(operand.height, operand.ring)):
        found.update(map(int, np.unique(held[_row(operand, start, len(held))])))
    return found


def _write(memory: dict[tuple[Region, int], Marks], operand: Operand, first: int, end: int, tag: int) -> None:
    held = memory.get((operand.region, operand.index))
    for start in _rows(operand, first, end) if held is not None else ():
        assert held is not None
        held[_row(operand, start, len(held))] = tag


def _rows(operand: Operand, first: int, end: int) -> Iterable[int]:
    """The byte at which each row begins, of all images."""
    for image in range(operand.batch):
        for row in range(max(first, end - operand.ring), end):
            yield operand.offset + image * operand.plane + row % operand.ring * operand.pitch


def _row(operand: Operand, start: int, size: int) -> Any:
    """The bytes of one row: a slice, or their indices where pixels lie apart."""
    dense = operand.channels * ITEM_BYTES[operand.dtype]
    if operand.pixel == dense or operand.width == 1:
        return slice(start, min(start + operand.width * dense, size))
    at = start + np.arange(operand.width)[:, None] * operand.pixel + np.arange(dense)
    return at[at < size]
