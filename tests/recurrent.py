"""Recurrent layers as a converter unrolls them: the same operators for every step, with the same weights and scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openneutron.litert import DType, GraphBuilder
from openneutron.litert.write import write_model

CELLS = 12
INPUTS = 6
_STATE = (1 / 128, 0)


class Unrolled:
    """Builds one layer step by step."""

    def __init__(self, steps: int, batch: int = 1, *, wide: bool = False) -> None:
        self.g = GraphBuilder()
        self.rng = np.random.default_rng(5)
        self.steps, self.batch, self.wide = steps, batch, wide
        self.count = 0

    def named(self, name: str, shape: tuple[int, ...], scale: float, zero: int = 0) -> int:
        """A tensor of 8 bits, or of 16 with a scale that is finer and no power of two."""
        if self.wide:
            return self.g.tensor(name, shape, DType.INT16, scale / 250, 0)
        return self.g.tensor(name, shape, DType.INT8, scale, zero)

    def tensor(self, width: int, scale: float, zero: int = 0) -> int:
        self.count += 1
        return self.named(f"t{self.count}", (self.batch, width), scale, zero)

    def weights(self, rows: int, columns: int, source: float) -> tuple[int, int]:
        g, rng = self.g, self.rng
        self.count += 1
        matrix = rng.integers(-127, 128, (rows, columns))
        w = g.tensor(f"w{self.count}", (rows, columns), DType.INT8, 0.004, 0, data=matrix)
        bias = rng.integers(-300, 300, rows)
        kind, scale = (DType.INT64, source / 250) if self.wide else (DType.INT32, source)
        return w, g.tensor(f"b{self.count}", (rows,), kind, 0.004 * scale, 0, data=bias)

    def dense(self, x: int, weights: tuple[int, int], width: int, scale: float) -> int:
        y = self.tensor(width, scale)
        self.g.op("FULLY_CONNECTED", [x, *weights], [y])
        return y

    def binary(self, code: str, a: int, b: int, width: int, scale: float, zero: int = 0) -> int:
        y = self.tensor(width, scale, zero)
        self.g.op(code, [a, b], [y])
        return y

    def unary(self, code: str, x: int, width: int, scale: float, zero: int) -> int:
        # In 16 bits LiteRT's curves have one scale.
        y = self.tensor(width, 250 / 2**15 if self.wide else scale, zero)
        self.g.op(code, [x], [y])
        return y

    def part(self, x: int, first: int, width: int) -> int:
        """Channels of a tensor."""
        tensor = self.g.graph.tensors[x]
        assert tensor.quantization is not None
        self.count += 1
        begin = self.g.tensor(f"begin{self.count}", (2,), DType.INT32, data=(0, first))
        size = self.g.tensor(f"size{self.count}", (2,), DType.INT32, data=(self.batch, width))
        scale, zero = tensor.quantization.scalar
        y = self.g.tensor(f"p{self.count}", (self.batch, width), tensor.dtype, scale, zero)
        self.g.op("SLICE", [x, begin, size], [y])
        return y

    def step_of(self, x: int, step: int, width: int, scale: float, *, axis: int = 0) -> int:
        """Step `step` of [steps, batch, width], or of [batch, steps, width] where `axis` is 1."""
        self.count += 1
        begin, end = [0, 0, 0], list(self.g.graph.tensors[x].shape)
        begin[axis], end[axis] = step, step + 1
        data = (begin, end, (1, 1, 1))
        arguments = [self.g.tensor(f"s{self.count}_{at}", (3,), DType.INT32, data=one) for at, one in enumerate(data)]
        y = self.tensor(width, scale)
        self.g.op("STRIDED_SLICE", [x, *arguments], [y], shrink_axis_mask=1 << axis)
        return y


def gru(
    steps: int, *, batch: int = 1, sequence: bool = False, backwards: bool = False, wide: bool = False,
    batch_first: bool = False, apart: bool = False, zeros: bool = False,
) -> bytes:  # fmt: skip
    """A GRU layer; its last state, or with `sequence` all of them, is the output; `wide` is 16-bit activations.

    With `apart` all steps are picked before the first begins, as `unbind` does. With `zeros` the first state is constant, and
    both of its readers have a constant of their own.
    """
    u = Unrolled(steps, batch, wide=wide)
    walk = _Walk(u, backwards, int(batch_first), apart)
    x = walk.sequence("x", INPUTS, 1 / 32, 3)
    h = _first(u, "h", zeros)
    made, last = walk.states(x, h, _first(u, "h_again", zeros) if zeros else h)
    return write_model(u.g.finish([x] if zeros else [x, h], [walk.stacked(made) if sequence else last]))


def both_ways(steps: int) -> bytes:
    """A GRU layer in both directions; all of its states side by side are the output."""
    u = Unrolled(steps)
    walks = [_Walk(u, backwards) for backwards in (False, True)]
    x, h = walks[0].sequence("x", INPUTS, 1 / 32, 3), _first(u, "h", zeros=True)
    stacked = [walk.stacked(made) for walk, made in [(walk, walk.states(x, h, h)[0]) for walk in walks]]
    y = walks[0].sequence("both", 2 * CELLS, *_STATE)
    u.g.op("CONCATENATION", stacked, [y], axis=2)
    return write_model(u.g.finish([x], [y]))


def _first(u: Unrolled, name: str, zeros: bool) -> int:
    """The state before the first step."""
    h = u.named(name, (u.batch, CELLS), *_STATE)
    if zeros:
        tensor = u.g.graph.tensors[h]
        tensor.data = np.zeros(tensor.shape, tensor.dtype.numpy)
    return h


@dataclass
class _Walk:
    """A GRU layer in one direction; `axis` is the one of the steps."""

    u: Unrolled
    backwards: bool = False
    axis: int = 0
    apart: bool = False

    def sequence(self, name: str, width: int, scale: float, zero: int = 0) -> int:
        """A tensor of all steps."""
        u = self.u
        return u.named(name, (u.batch, u.steps, width) if self.axis else (u.steps, u.batch, width), scale, zero)

    def stacked(self, made: list[int]) -> int:
        """All states as one tensor."""
        self.u.count += 1
        y = self.sequence(f"y{self.u.count}", CELLS, *_STATE)
        self.u.g.op("PACK", made, [y], values_count=self.u.steps, axis=self.axis)
        return y

    def states(self, x: int, h: int, again: int) -> tuple[list[int], int]:
        """The state of every step, in the sequence's order, and the last; `again` is the first for its other reader."""
        u = self.u
        wx, wh = u.weights(3 * CELLS, INPUTS, 1 / 32), u.weights(3 * CELLS, CELLS, 1 / 128)
        u.count += 1
        gates = self.sequence(f"gates{u.count}", 3 * CELLS, 0.05)
        u.g.op("FULLY_CONNECTED", [x, *wx], [gates], keep_num_dims=True)
        made: list[int] = [-1] * u.steps
        order = list(reversed(range(u.steps)) if self.backwards else range(u.steps))
        picked = {step: u.step_of(gates, step, 3 * CELLS, 0.05, axis=self.axis) for step in order if self.apart}
        for step in order:
            given = picked[step] if self.apart else u.step_of(gates, step, 3 * CELLS, 0.05, axis=self.axis)
            carried = u.dense(h, wh, 3 * CELLS, 0.05)
            both = u.binary("ADD", u.part(given, 0, 2 * CELLS), u.part(carried, 0, 2 * CELLS), 2 * CELLS, 0.06)
            opened = u.unary("LOGISTIC", both, 2 * CELLS, 1 / 256, -128)
            reset, update = u.part(opened, 0, CELLS), u.part(opened, CELLS, CELLS)
            new = u.binary("MUL", reset, u.part(carried, 2 * CELLS, CELLS), CELLS, 0.05)
            new = u.binary("ADD", u.part(given, 2 * CELLS, CELLS), new, CELLS, 0.06)
            new = u.unary("TANH", new, CELLS, 1 / 128, 0)
            kept = u.binary("MUL", update, u.binary("SUB", again, new, CELLS, 1 / 64), CELLS, 1 / 64)
            h = again = u.binary("ADD", new, kept, CELLS, *_STATE)
            made[step] = h
        return made, h


def lstm(steps: int, *, batch: int = 1, sequence: bool = False, wide: bool = False) -> bytes:
    """An LSTM layer of [batch, steps, inputs] as Keras' is unrolled: UNPACK in front, SPLIT in each step, zeros at first."""
    u = Unrolled(steps, batch, wide=wide)
    g = u.g
    x = u.named("x", (batch, steps, INPUTS), 1 / 32, 3)
    inputs = [u.tensor(INPUTS, 1 / 32, 3) for _ in range(steps)]
    g.op("UNPACK", [x], inputs, num=steps, axis=1)
    kind, unit = (DType.INT16, 1 / 250) if wide else (DType.INT8, 1.0)
    zeros = np.zeros((batch, CELLS))
    h, c = (g.tensor(n, (batch, CELLS), kind, unit * s, 0, data=zeros) for n, s in (("h", 1 / 128), ("c", 1 / 32)))
    wx, wh = u.weights(4 * CELLS, INPUTS, 1 / 32), u.weights(4 * CELLS, CELLS, 1 / 128)
    axis = g.tensor("axis", (), DType.INT32, data=np.int32(1))
    made = []
    for given in inputs:
        both = u.dense(given, wx, 4 * CELLS, 0.05), u.dense(h, wh, 4 * CELLS, 0.05)
        gates = [u.tensor(CELLS, 0.06) for _ in range(4)]
        g.op("SPLIT", [axis, u.binary("ADD", *both, 4 * CELLS, 0.06)], gates, num_splits=4)
        opened, kept, shown = (u.unary("LOGISTIC", gates[at], CELLS, 1 / 256, -128) for at in (0, 1, 3))
        new = u.binary("MUL", opened, u.unary("TANH", gates[2], CELLS, 1 / 128, 0), CELLS, 1 / 128)
        c = u.binary("ADD", u.binary("MUL", kept, c, CELLS, 1 / 32), new, CELLS, 1 / 32)
        h = u.binary("MUL", shown, u.unary("TANH", c, CELLS, 1 / 128, 0), CELLS, *_STATE)
        made.append(h)
    if not sequence:
        return write_model(g.finish([x], [h]))
    y = u.named("y", (batch, steps, CELLS), *_STATE)
    g.op("PACK", made, [y], values_count=steps, axis=1)
    return write_model(g.finish([x], [y]))
