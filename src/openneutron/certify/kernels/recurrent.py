"""Rules of kernels with a state: each step must read and keep what a step of the source reads and keeps."""

from __future__ import annotations

import struct
from array import array
from typing import Any

from openneutron.certify.kernels import rule
from openneutron.certify.kernels.products import unpack_matrices
from openneutron.certify.operators.recurrent import (
    COUPLED,
    NORMALIZE,
    PEEPHOLE,
    PROJECT,
    SECOND,
    lstm_step,
    name_of,
    svdf_step,
)  # fmt: skip
from openneutron.certify.read.microcode import DTYPES
from openneutron.certify.tags import NOTHING, fill_tags

_DOUBLE = 1  # rounding
_HEAD = 9  # words before a gate's vectors
_MOST = 1 << 14  # cells, channels, filters and steps that the firmware accepts


def _check_types(m: Any, call: Any, first: int, types: dict[str, str]) -> None:
    for role, dtype in types.items():
        if DTYPES[call.operands[role].dtype] != dtype:
            raise m.refuse(call, first, f"its {role} is not {dtype}")
    if call.rounding != _DOUBLE:
        raise m.refuse(call, first, "its rounding is none of a recurrent layer")


@rule("svdf", keeps=True)
def svdf(m: Any, call: Any, first: int, last: int) -> None:
    """Match each pixel with a step of an SVDF operator: filters with a memory of past results, and units that sum filters."""
    p, x, o = call.params, call.operands["input"], call.output
    _check_types(m, call, first, {"input": "INT8", "output": "INT8", "memory": "INT16"})
    if (x.batch, x.height, x.width) != (1, 1, o.width) or (o.batch, o.height) != (1, 1):
        raise m.refuse(call, first, "input and output are not one row each")
    units, rank, steps = o.channels, p["rank"], p["steps"]
    if not (1 <= rank <= _MOST and 1 <= steps <= _MOST and units * rank <= _MOST):
        raise m.refuse(call, first, f"{units} units of rank {rank} with {steps} steps")
    filters = units * rank
    names = m.once(call, ("weights", "table"), lambda: _svdf_names(m, call, filters))
    each = 2 * filters * steps
    memory, given = m.read_state(call, "memory", each * o.width), m.row(call, "input", 0, 0)
    made, moved = array("Q"), array("Q")
    for at in range(o.width):
        vector = given[at * x.channels : (at + 1) * x.channels]
        step = svdf_step(m.world, names, (units, steps), vector, memory[at * each : (at + 1) * each], add=False)
        if step is None:
            raise m.refuse(call, first, "no operator of the source has these weights, parameters, inputs and memory")
        made.extend(step[0])
        moved.extend(step[1])
    m.keep(call, "memory", moved)
    m.put(call, 0, 0, made)


def _svdf_names(m: Any, call: Any, filters: int) -> tuple[bytes, bytes]:
    p, depth, units = call.params, call.operands["input"].channels, call.output.channels
    rows = unpack_matrices(m, call, "weights", [(filters, depth)])[0]
    count = filters * p["steps"]
    numbers = struct.unpack(
        f"<{filters + units}i{count}h", m.read_constant(call, "table", 4 * (filters + units) + 2 * count)
    )
    scales = (p["filter_multiplier"], p["filter_shift"]), (p["output_multiplier"], p["output_shift"])
    return (
        name_of((tuple(rows), numbers[:filters], scales[0])),
        name_of(
            (p["rank"], p["steps"], numbers[filters + units :], numbers[filters : filters + units], scales[1],
             p["output_zero"])
        ),
    )  # fmt: skip


@rule("lstm", keeps=True)
def lstm(m: Any, call: Any, first: int, last: int) -> None:
    """Match each row with a step in time of an LSTM; images and pixels are independent sequences."""
    p, x, o = call.params, call.operands["input"], call.output
    _check_types(m, call, first, {"input": "INT8", "output": "INT8", "hidden": "INT8", "cell": "INT16"})
    cells, outputs, depth = p["cells"], o.channels, x.channels
    if x.shape[:3] != o.shape[:3] or not 1 <= cells <= _MOST or max(depth, outputs) > _MOST or p["flags"] & ~15:
        raise m.refuse(call, first, "input and output differ in steps or batch, or its sizes or flags make no sense")
    if not p["flags"] & PROJECT and outputs != cells:
        raise m.refuse(call, first, f"{cells} cells give {outputs} outputs without a projection")
    name = m.once(call, ("weights", "table"), lambda: _lstm_name(m, call))
    sequences = o.batch * o.width
    hidden, cell = m.read_state(call, "hidden", sequences * outputs), m.read_state(call, "cell", 2 * sequences * cells)
    rows: dict[tuple[int, int], array[int]] = {}
    for image in range(o.batch):
        given = [m.row(call, "input", image, y) for y in range(first, last)]
        lines = [array("Q") for _ in given]
        for at in range(o.width):
            n = image * o.width + at
            h, k = hidden[n * outputs : (n + 1) * outputs], cell[2 * n * cells : 2 * (n + 1) * cells]
            for row, line in zip(given, lines, strict=True):
                after = lstm_step(
                    m.world, name, (outputs, cells), (row[at * depth : (at + 1) * depth], h, k), add=False
                )
                if after is None:
                    raise m.refuse(
                        call, first, "no operator of the source has these weights, parameters, inputs and states"
                    )
                h, k = after
                line.extend(h)
            hidden[n * outputs : (n + 1) * outputs], cell[2 * n * cells : 2 * (n + 1) * cells] = h, k
        rows |= {(image, y): line for y, line in zip(range(first, last), lines, strict=True)}
    for (image, y), line in rows.items():
        m.put(call, image, y, line)
    m.keep(call, "hidden", hidden)
    m.keep(call, "cell", cell)
    m.keep(call, "workspace", fill_tags(NOTHING, 9 * cells + 1))


def _lstm_name(m: Any, call: Any) -> bytes:
    p, depth, outputs = call.params, call.operands["input"].channels, call.output.channels
    flags, cells = p["flags"], p["cells"]
    count = 3 if flags & COUPLED else 4
    parts = [(cells, depth), (cells, outputs)] * count + [(outputs, cells)] * bool(flags & PROJECT)
    matrices = unpack_matrices(m, call, "weights", parts)
    vectors = bool(flags & PEEPHOLE) + 2 * bool(flags & NORMALIZE)
    size = _HEAD + (2 + vectors) * cells
    total = count * size + (outputs if flags & PROJECT else 0)
    words = struct.unpack(f"<{total}i", m.read_constant(call, "table", 4 * total))
    gates = []
    for at in range(count):
        head, rest = words[at * size : at * size + _HEAD], words[at * size + _HEAD : (at + 1) * size]
        lists = [rest[k * cells : (k + 1) * cells] for k in range(2 + vectors)]
        gate: list[Any] = [
            (tuple(matrices[2 * at]), lists[0], head[0:2]),
            (tuple(matrices[2 * at + 1]), lists[1], head[2:4]),
        ]
        if flags & PEEPHOLE and at != SECOND:
            gate.append((tuple((one + 32768) % 65536 - 32768 for one in lists[2]), head[4:6]))
        if flags & NORMALIZE:
            gate.append((lists[-2], lists[-1], head[6:8], max(1, head[8])))
        gates.append(tuple(gate))
    projection: tuple[Any, ...] = (tuple(matrices[-1]), words[count * size :]) if flags & PROJECT else ()
    names = (
        "cells", "flags", "hidden_multiplier", "hidden_shift", "hidden_zero", "projection_multiplier", "projection_shift",
        "output_zero", "cell_scale", "cell_clip", "projection_clip",
    )  # fmt: skip
    return name_of((tuple(p[name] for name in names), tuple(gates), projection))
