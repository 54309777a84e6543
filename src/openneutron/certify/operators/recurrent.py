"""Rules of operators that keep variable tensors between runs: SVDF and the integer LSTM.

A step is a function of its input, of the state and of all constants; it is identified by these three.
"""

from __future__ import annotations

import hashlib
import math
import struct
from array import array
from collections.abc import Hashable
from typing import Any

from openneutron.certify.numbers import f32, multiplier, wrap
from openneutron.certify.operators import Context, rule
from openneutron.certify.read.litert import Tensor
from openneutron.certify.tags import digest, value_of
from openneutron.certify.world import World

COUPLED, PEEPHOLE, NORMALIZE, PROJECT = 1, 2, 4, 8  # flags of a call
SECOND = 1  # position of the cell gate in a call, which has no peephole
_RELU, _TANH = 1, 4  # of the schema's ActivationFunctionType
# Inputs of UNIDIRECTIONAL_SEQUENCE_LSTM; its gates are input, forget, cell, output.
_FROM_INPUT, _FROM_HIDDEN, _BIASES, _NORMS = (1, 2, 3, 4), (5, 6, 7, 8), (12, 13, 14, 15), (20, 21, 22, 23)
_PEEPHOLES = (9, 10, 11)  # of input, forget and output gate
_PROJECTION, _PROJECTION_BIAS, _HIDDEN, _CELL = 16, 17, 18, 19
_ORDER = (1, 2, 3, 0)  # gates as a call lists them
_GATE_SCALE = 2.0**-12
_CELL_SCALES = range(-15, -8)  # powers of two
_GUARD = 10000


def name_of(meaning: Hashable) -> bytes:
    """Return a hash of constants and parameters."""
    return hashlib.sha256(repr(meaning).encode()).digest()


def svdf_step(
    world: World, names: tuple[bytes, bytes], sizes: tuple[int, int], x: array[int], memory: array[int], *, add: bool
) -> tuple[array[int], array[int]] | None:
    """Return output and new memory of one sequence; None if the source has no such step and `add` is false."""
    units, steps = sizes
    count = len(memory) // (2 * steps)
    made = world.step("svdf filters", (names[0], digest(x)), 2 * count, add=add)
    if made is None:
        return None
    moved = array("Q")
    for at in range(count):
        moved.extend(memory[2 * (at * steps + 1) : 2 * (at + 1) * steps])
        moved.extend(made[2 * at : 2 * at + 2])
    output = world.step("svdf units", (names[1], digest(moved)), units, add=add)
    return None if output is None else (output, moved)


def lstm_step(
    world: World, name: bytes, sizes: tuple[int, int], given: tuple[array[int], array[int], array[int]], *, add: bool
) -> tuple[array[int], array[int]] | None:
    """Return hidden state (the output) and cell state after one step from input, hidden and cell state.

    None if the source has no such step and `add` is false.
    """
    outputs, cells = sizes
    made = world.step("lstm", (name, *map(digest, given)), outputs + 2 * cells, add=add)
    return None if made is None else (made[:outputs], made[outputs:])


def _vector(c: Context, position: int, dtype: str, count: int) -> list[int] | None:
    """Return a constant vector of integers, None if the input is not one."""
    data, tensor = value_of(c.tags(position)), c.tensor(position)
    if data is None or tensor.dtype != dtype or len(data) != tensor.item * count:
        return None
    return list(struct.unpack(f"<{count}{'i' if dtype == 'INT32' else 'h'}", data))


def _weights(c: Context, position: int, shape: tuple[int, int]) -> list[bytes] | None:
    """Return the rows of a constant INT8 matrix with one scale and zero point 0, None if the input is not one."""
    tensor, data = c.tensor(position), value_of(c.tags(position))
    if data is None or tensor.dtype != "INT8" or tensor.shape != shape or not _plain(tensor):
        return None
    return [data[at * shape[1] : (at + 1) * shape[1]] for at in range(shape[0])]


def _plain(tensor: Tensor) -> bool:
    return len(tensor.scale) == 1 and tensor.scale[0] > 0 and not any(tensor.zero_point)


def _fold_zero_point(bias: int, weights: bytes, zero: int) -> int:
    """Return the bias minus the contribution of the input's zero point."""
    return wrap(bias - zero * sum(array("b", weights)))


@rule("SVDF")
def svdf(c: Context) -> list[array[int]] | None:
    """Compute filters that keep their last outputs, and units that sum their filters, weighted over time."""
    if not all(c.has(at) for at in (0, 1, 2, 4)):
        return None
    x, y, feature, time, memory = c.tensor(0), c.out, c.tensor(1), c.tensor(2), c.tensor(4)
    rank = c.op.options.get("Rank", 0)
    if (x.dtype, y.dtype, memory.dtype, time.dtype) != ("INT8", "INT8", "INT16", "INT16") or not memory.variable:
        return None
    if any(len(one.shape) != 2 for one in (x, y, feature, time, memory)) or rank < 1:
        return None
    (batch, inputs), (filters, steps) = x.shape, time.shape
    rows, weighted = _weights(c, 1, (filters, inputs)), _vector(c, 2, "INT16", filters * steps)
    biases = _vector(c, 3, "INT32", filters // rank) if c.has(3) else [0] * (filters // rank)
    plain = _plain(time) and _plain(memory) and len(x.scale) == len(y.scale) == 1 and min(x.scale[0], y.scale[0]) > 0
    if rows is None or weighted is None or biases is None or not plain or filters % rank or not steps:
        return None
    if y.shape != (batch, filters // rank) or memory.shape != (batch, filters * steps):
        return None
    if c.op.options.get("FusedActivationFunction", 0) != _RELU:
        return None
    kept = memory.scale[0]
    first = multiplier(f32(f32(x.scale[0] * feature.scale[0]) / kept))
    second = multiplier(f32(f32(kept * time.scale[0]) / y.scale[0]))
    folded = [_fold_zero_point(0, row, x.quantization[1]) for row in rows]
    names = (
        name_of((tuple(rows), tuple(folded), first)),
        name_of((rank, steps, tuple(weighted), tuple(biases), second, y.quantization[1])),
    )
    made, moved, each = array("Q"), array("Q"), 2 * filters * steps
    for at in range(batch):
        vector, before = c.tags(0)[at * inputs : (at + 1) * inputs], c.tags(4)[at * each : (at + 1) * each]
        step = svdf_step(c.world, names, (filters // rank, steps), vector, before, add=True)
        assert step is not None
        made.extend(step[0])
        moved.extend(step[1])
    c.keep(4, moved)
    return [made]


def _factor(*scales: float, over: float) -> tuple[int, int]:
    """Return the multiplier of a product of scales divided by another, rounded to float32 after each step."""
    product = scales[0]
    for scale in scales[1:]:
        product = f32(product * scale)
    return multiplier(f32(product / over))


def _clip(real: float, scale: float, most: int) -> int:
    return int(min(max(f32(real / scale), -most - 1), most))


def _gate(c: Context, gate: int, flags: int, sizes: tuple[int, int, int], exponent: int) -> tuple[Any, ...] | None:
    """Return all constants and factors of one gate, None if the operator has another form."""
    cells, inputs, outputs = sizes
    scale = c.inner(gate).scale[0] if flags & NORMALIZE else _GATE_SCALE
    biases = _vector(c, _BIASES[gate], "INT32", cells)
    if biases is None:
        return None
    made: list[Any] = []
    for position, source, width in (
        (_FROM_INPUT[gate], c.tensor(0), inputs),
        (_FROM_HIDDEN[gate], c.tensor(_HIDDEN), outputs),
    ):
        rows = _weights(c, position, (cells, width))
        if rows is None:
            return None
        first = biases if source is c.tensor(0) and not flags & NORMALIZE else [0] * cells
        folded = tuple(_fold_zero_point(b, row, source.quantization[1]) for b, row in zip(first, rows, strict=True))
        made.append((tuple(rows), folded, _factor(c.tensor(position).scale[0], source.scale[0], over=scale)))
    if flags & PEEPHOLE and gate != 2:
        position = _PEEPHOLES[min(gate, 2)]
        weights = _vector(c, position, "INT16", cells)
        if weights is None or not c.tensor(position).quantization[0] > 0:
            return None
        made.append((tuple(weights), _factor(2.0**exponent, c.tensor(position).scale[0], over=scale)))
    if flags & NORMALIZE:
        coefficients, norm = _vector(c, _NORMS[gate], "INT16", cells), c.tensor(_NORMS[gate]).quantization[0]
        if coefficients is None or not norm > 0:
            return None
        fixed, shift = multiplier(norm)
        made.append((tuple(coefficients), tuple(biases), (fixed, shift + 12), max(1, int(f32(_GUARD * norm)))))
    return tuple(made)


def _usable(c: Context) -> bool:
    """Return whether this is the integer LSTM with complete gates and variable states."""
    o, y = c.op.options, c.out
    if len(c.op.inputs) < 20 or len(c.op.intermediates) != 5 or len(c.tensor(0).shape) != 3 or len(y.shape) != 3:
        return False
    if not all(c.has(part[gate]) for part in (_FROM_INPUT, _FROM_HIDDEN, _BIASES) for gate in (1, 2, 3)):
        return False
    if len({c.has(part[0]) for part in (_FROM_INPUT, _FROM_HIDDEN, _BIASES)}) != 1:
        return False
    if not (c.has(_HIDDEN) and c.has(_CELL)):
        return False
    x, hidden, cell = c.tensor(0), c.tensor(_HIDDEN), c.tensor(_CELL)
    if (x.dtype, y.dtype, hidden.dtype, cell.dtype) != ("INT8", "INT8", "INT8", "INT16"):
        return False
    if not (hidden.variable and cell.variable) or hidden.quantization != y.quantization or not _plain(cell):
        return False
    scales = [tensor.quantization[0] for tensor in (x, y, c.inner(4))]
    clips = o.get("CellClip", 0.0), o.get("ProjClip", 0.0)
    simple = o.get("FusedActivationFunction", 0) == _TANH and not o.get("DiagonalRecurrentTensors")
    return min(scales) > 0 and min(clips) >= 0 and simple


@rule("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(c: Context) -> list[array[int]] | None:
    """Compute an LSTM with 16-bit gates step by step; hidden and cell state are kept between runs."""
    if not _usable(c):
        return None
    x, y, cell, inner = c.tensor(0), c.out, c.tensor(_CELL), c.inner(4)
    fraction, power = math.frexp(cell.scale[0])
    exponent, cells = power - 1, c.tensor(_FROM_INPUT[3]).shape[0]
    inputs, outputs = x.shape[2], y.shape[2]
    flags = COUPLED * (not c.has(_FROM_INPUT[0])) + PEEPHOLE * c.has(_PEEPHOLES[1]) + NORMALIZE * c.has(_NORMS[1])
    flags += PROJECT * c.has(_PROJECTION)
    if fraction != 0.5 or exponent not in _CELL_SCALES or x.shape[:2] != y.shape[:2]:
        return None
    if flags & NORMALIZE and not all(c.inner(gate).quantization[0] > 0 for gate in range(4)):
        return None
    projection = _projection(c, cells, outputs)
    gates = [
        _gate(c, gate, flags, (cells, inputs, outputs), exponent) for gate in _ORDER[: 3 if flags & COUPLED else 4]
    ]
    if projection is None or None in gates or (not flags & PROJECT and outputs != cells):
        return None
    o = c.op.options
    zero = -inner.quantization[1] if flags & PROJECT else inner.quantization[1]
    hidden = multiplier(f32(f32(2.0**-15 / inner.scale[0]) * 2.0**-15))
    params = (
        cells, flags, *hidden, zero, *projection[1], y.quantization[1], exponent,
        _clip(o.get("CellClip", 0.0), cell.scale[0], 32767), _clip(o.get("ProjClip", 0.0), y.scale[0], 127),
    )  # fmt: skip
    name = name_of((params, tuple(gates), projection[0]))
    return [_sequences(c, name, (inputs, outputs, cells))]


def _projection(c: Context, cells: int, outputs: int) -> tuple[tuple[Any, ...], tuple[int, int]] | None:
    """Return rows and biases of the projection, and its factor; they are empty without a projection."""
    inner = c.inner(4)
    if not c.has(_PROJECTION):
        return ((), (0, 0)) if inner.quantization == c.out.quantization else None
    rows = _weights(c, _PROJECTION, (outputs, cells))
    biases = _vector(c, _PROJECTION_BIAS, "INT32", outputs) if c.has(_PROJECTION_BIAS) else [0] * outputs
    if rows is None or biases is None:
        return None
    folded = tuple(_fold_zero_point(b, row, -inner.quantization[1]) for b, row in zip(biases, rows, strict=True))
    return (tuple(rows), folded), _factor(c.tensor(_PROJECTION).scale[0], inner.scale[0], over=c.out.scale[0])


def _sequences(c: Context, name: bytes, sizes: tuple[int, int, int]) -> array[int]:
    """Compute every sequence of the batch, step by step, and return the tags of the output."""
    inputs, outputs, cells = sizes
    major = bool(c.op.options.get("TimeMajor"))
    steps, batch = c.tensor(0).shape[:2] if major else c.tensor(0).shape[1::-1]
    given, hidden, cell = c.tags(0), array("Q", c.tags(_HIDDEN)), array("Q", c.tags(_CELL))
    if (len(hidden), len(cell)) != (batch * outputs, 2 * batch * cells):
        raise ValueError("the states of an LSTM are not those of its batch")
    made = array("Q", bytes(8 * steps * batch * outputs))
    for n in range(batch):
        h, k = hidden[n * outputs : (n + 1) * outputs], cell[2 * n * cells : 2 * (n + 1) * cells]
        for t in range(steps):
            at = t * batch + n if major else n * steps + t
            after = lstm_step(c.world, name, (outputs, cells), (given[at * inputs : (at + 1) * inputs], h, k), add=True)
            assert after is not None
            h, k = after
            made[at * outputs : (at + 1) * outputs] = h
        hidden[n * outputs : (n + 1) * outputs], cell[2 * n * cells : 2 * (n + 1) * cells] = h, k
    c.keep(_HIDDEN, hidden)
    c.keep(_CELL, cell)
    return made
