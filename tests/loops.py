"""Recurrent layers as converters write them when they do not unroll: WHILE with a condition and a body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from openneutron.litert import DType, GraphBuilder
from openneutron.litert.graph import Graph, Model
from openneutron.litert.write import write_model

CELLS = 12
INPUTS = 6
Scale = tuple[float, int]


@dataclass
class Loop:
    """A layer over `rows` steps of which the loop takes those from `start` on, every `stride`-th.

    `reads` is how the body takes a step of its input (gather, slice or strided), `writes` how it keeps a step of its result
    (update: DYNAMIC_UPDATE_SLICE, concat: slices around the row). `wide` is 16-bit activations. `bounds` is how many conditions
    are joined. `handed_on` is the scale under which the body sees its state, if it is not that of what it made.
    """

    rows: int = 6
    start: int = 0
    stride: int = 1
    batch: int = 1
    wide: bool = False
    reads: str = "gather"
    writes: str = "update"
    bounds: int = 2
    limit: int | None = None
    outputs: tuple[str, ...] = ("sequence",)
    captured: bool = False  # weights are carried through the loop, as converters do
    handed_on: Scale | None = None
    gated: bool = True
    extra: Callable[[GraphBuilder, int], int] | None = None  # what the body does with its state behind everything else
    at_run_time: bool = False  # where the counter starts
    zeros: bool = False  # the first state is a constant
    lstm: bool = False  # four gates from one product, and a second state

    def data(self) -> bytes:
        """The file."""
        return write_model(self.model())

    def tensor(self, g: GraphBuilder, name: str, shape: tuple[int, ...], scale: float, zero: int = 0) -> int:
        if self.wide:
            return g.tensor(name, shape, DType.INT16, scale / 250, 0)
        return g.tensor(name, shape, DType.INT8, scale, zero)

    def state(self, g: GraphBuilder, name: str, shape: tuple[int, ...], other: bool = False) -> int:
        return self.tensor(g, name, shape, *(self.handed_on if other and self.handed_on else (1 / 128, 0)))

    def carried(self, g: GraphBuilder, suffix: str = "", inner: bool = False) -> list[int]:
        """What goes around: two counters, the state, the result, the input and, where they are captured, weights."""
        made = [g.tensor(f"{name}{suffix}", (), DType.INT32) for name in ("loop_counter", "time")]
        made.append(self.state(g, f"h{suffix}", (self.batch, CELLS), other=inner))
        made.append(self.state(g, f"y{suffix}", (self.rows, self.batch, CELLS)))
        made.append(self.tensor(g, f"x{suffix}", (self.rows, self.batch, INPUTS), 1 / 32, 3))
        if self.captured:
            made.append(g.tensor(f"w{suffix}", (CELLS, CELLS), DType.INT8, 0.004, 0))
        if self.lstm:
            made.append(self.tensor(g, f"c{suffix}", (self.batch, CELLS), 1 / 32))
        return made

    def model(self) -> Model:
        main = GraphBuilder()
        condition, body = main.calls(self.condition()), main.calls(self.body())
        values = self.carried(main)
        tensors = main.graph.tensors
        begins: list[int] = [] if self.at_run_time else [0, self.start]
        for at, begin in enumerate(begins):
            tensors[values[at]].data = np.array(begin, np.int32)
        tensors[values[3]].data = np.zeros(tensors[values[3]].shape, tensors[values[3]].dtype.numpy)
        if self.captured:
            tensors[values[5]].data = self.weights(CELLS)
        inputs = [values[4], values[2], *(values[:2] if self.at_run_time else ()), *(values[5:] if self.lstm else ())]
        if self.zeros:
            for index in (values[2], *values[5:]):
                tensors[index].data = np.zeros(tensors[index].shape, tensors[index].dtype.numpy)
            inputs = inputs[:1]
        made = self.carried(main, "_out")
        main.op("WHILE", values, made, cond_subgraph_index=condition, body_subgraph_index=body)
        names = {"counter": 0, "time": 1, "state": 2, "sequence": 3, "input": 4}
        return main.finish(inputs, [made[names[name]] for name in self.outputs], signature="serving_default")

    def condition(self) -> Graph:
        g = GraphBuilder("cond")
        values = self.carried(g, inner=True)
        limits = (self.rows, self.rows if self.limit is None else self.limit)
        found = []
        for at in range(2 - self.bounds, 2):
            found.append(g.tensor(f"less{at}", (), DType.BOOL))
            g.op("LESS", [values[at], g.tensor(f"limit{at}", (), DType.INT32, data=limits[at])], found[-1:])
        if self.bounds == 2:
            found.append(g.tensor("both", (), DType.BOOL))
            g.op("LOGICAL_AND", found[:2], found[2:])
        return g.finish(values, found[-1:]).main

    def weights(self, columns: int) -> np.ndarray:
        return np.random.default_rng(columns).integers(-127, 128, (CELLS, columns)).astype(np.int8)

    def dense(self, g: GraphBuilder, x: int, columns: int, source: float, given: int | None = None) -> int:
        w = g.tensor(f"w{columns}", (CELLS, columns), DType.INT8, 0.004, 0, data=self.weights(columns))
        kind, scale = (DType.INT64, source / 250) if self.wide else (DType.INT32, source)
        b = g.tensor(f"b{columns}", (CELLS,), kind, 0.004 * scale, 0, data=np.arange(-30, -30 + 5 * CELLS, 5))
        y = self.tensor(g, f"fc{columns}", (self.batch, CELLS), 0.05)
        g.op("FULLY_CONNECTED", [x, w if given is None else given, b], [y])
        return y

    def curve(self, g: GraphBuilder, code: str, x: int, scale: float, zero: int) -> int:
        y = self.tensor(g, code.lower(), (self.batch, CELLS), 250 / 2**15 if self.wide else scale, zero)
        g.op(code, [x], [y])
        return y

    def pair(self, g: GraphBuilder, code: str, a: int, b: int, name: str, scale: float) -> int:
        y = self.tensor(g, name, (self.batch, CELLS), scale)
        g.op(code, [a, b], [y])
        return y

    def body(self) -> Graph:
        g = GraphBuilder("body")
        values = self.carried(g, inner=True)
        counter, time, h, y, x = values[:5]
        after = [g.tensor(name, (), DType.INT32) for name in ("counter_after", "time_after")]
        one, stride = (g.tensor(name, (), DType.INT32, data=n) for name, n in (("one", 1), ("stride", self.stride)))
        g.op("ADD", [counter, one], after[:1])
        g.op("ADD", [time, stride], after[1:])
        if self.lstm:
            new, cell = self.long_short(g, self.step(g, x, time), h, values[5])
            return g.finish(values, [*after, new, self.write(g, y, new, time), x, cell]).main
        source = (self.handed_on or (1 / 128, 0))[0]
        given = self.dense(g, self.step(g, x, time), INPUTS, 1 / 32)
        held = self.dense(g, h, CELLS, source, values[5] if self.captured else None)
        new = self.curve(g, "TANH", self.pair(g, "ADD", given, held, "sum", 0.06), 1 / 128, 0)
        if self.gated:
            gate = self.curve(g, "LOGISTIC", held, 1 / 256, -128)
            kept = self.pair(g, "MUL", gate, self.pair(g, "SUB", h, new, "change", 1 / 64), "kept", 1 / 64)
            made = self.state(g, "h_after", (self.batch, CELLS))
            g.op("ADD", [new, kept], [made])
            new = made
        if self.extra is not None:
            new = self.extra(g, new)
        written = self.write(g, y, new, time)
        return g.finish(values, [*after, new, written, x, *values[5:]]).main

    def long_short(self, g: GraphBuilder, x: int, h: int, c: int) -> tuple[int, int]:
        """The next state and cell."""
        sums = []
        for name, source, columns in (("x", x, INPUTS), ("h", h, CELLS)):
            data = np.random.default_rng(columns).integers(-127, 128, (4 * CELLS, columns))
            w = g.tensor(f"w_{name}", data.shape, DType.INT8, 0.004, 0, data=data)
            sums.append(self.tensor(g, f"sums_{name}", (self.batch, 4 * CELLS), 0.05))
            g.op("FULLY_CONNECTED", [source, w, -1], sums[-1:])
        total = self.tensor(g, "sums", (self.batch, 4 * CELLS), 0.06)
        g.op("ADD", sums, [total])
        parts = [self.tensor(g, f"part{at}", (self.batch, CELLS), 0.06) for at in range(4)]
        g.op("SPLIT", [g.tensor("split_axis", (), DType.INT32, data=1), total], parts, num_splits=4)
        gates = [self.curve(g, "LOGISTIC", part, 1 / 256, -128) for part in parts[:3]]
        kept = self.pair(g, "MUL", gates[0], c, "kept", 1 / 32)
        added = self.pair(g, "MUL", gates[1], self.curve(g, "TANH", parts[3], 1 / 128, 0), "added", 1 / 128)
        cell = self.pair(g, "ADD", kept, added, "cell", 1 / 32)
        new = self.state(g, "h_after", (self.batch, CELLS))
        g.op("MUL", [gates[2], self.curve(g, "TANH", cell, 1 / 128, 0)], [new])
        return new, cell

    def numbers(self, g: GraphBuilder, name: str, *values: int) -> int:
        return g.tensor(name, (len(values),), DType.INT32, data=values)

    def vector(self, g: GraphBuilder, name: str, time: int, *rest: int) -> int:
        """[time, …rest] as an INT32 vector."""
        row, made = g.tensor(f"{name}_row", (1,), DType.INT32), g.tensor(name, (1 + len(rest),), DType.INT32)
        g.op("EXPAND_DIMS", [time, g.tensor(f"{name}_axis", (), DType.INT32, data=0)], [row])
        g.op("CONCATENATION", [row, self.numbers(g, f"{name}_rest", *rest)], [made], axis=0)
        return made

    def step(self, g: GraphBuilder, x: int, time: int) -> int:
        made = self.tensor(g, "x_step", (self.batch, INPUTS), 1 / 32, 3)
        if self.reads == "gather":
            g.op("GATHER", [x, time], [made], axis=0, batch_dims=0)
            return made
        begin = self.vector(g, "begin", time, 0, 0)
        if self.reads == "strided":
            end = g.tensor("end", (3,), DType.INT32)
            g.op("ADD", [begin, self.numbers(g, "size", 1, self.batch, INPUTS)], [end])
            g.op("STRIDED_SLICE", [x, begin, end, self.numbers(g, "ones", 1, 1, 1)], [made], shrink_axis_mask=1)
            return made
        row = self.tensor(g, "x_row", (1, self.batch, INPUTS), 1 / 32, 3)
        g.op("SLICE", [x, begin, self.numbers(g, "size", 1, -1, -1)], [row])
        shape = self.numbers(g, "step_shape", self.batch, INPUTS)
        g.op("RESHAPE", [row, shape], [made], new_shape=[self.batch, INPUTS])
        return made

    def write(self, g: GraphBuilder, y: int, new: int, time: int) -> int:
        row = self.state(g, "row", (1, self.batch, CELLS))
        g.op("EXPAND_DIMS", [new, g.tensor("row_axis", (), DType.INT32, data=0)], [row])
        made = self.state(g, "y_after", (self.rows, self.batch, CELLS))
        if self.writes == "update":
            g.op("DYNAMIC_UPDATE_SLICE", [y, row, self.vector(g, "at", time, 0, 0)], [made])
            return made
        # Parts whose size depends on the counter have no size in the file.
        before, behind = (self.state(g, name, (1, self.batch, CELLS)) for name in ("before", "behind"))
        for index in (before, behind):
            g.graph.tensors[index].shape_signature = (-1, self.batch, CELLS)
        zeros, rest = self.numbers(g, "zeros", 0, 0, 0), self.numbers(g, "rest", -1, -1, -1)
        g.op("SLICE", [y, zeros, self.vector(g, "count", time, -1, -1)], [before])
        next_ = g.tensor("next", (), DType.INT32)
        g.op("ADD", [time, g.tensor("one_more", (), DType.INT32, data=1)], [next_])
        g.op("SLICE", [y, self.vector(g, "from", next_, 0, 0), rest], [behind])
        g.op("CONCATENATION", [before, row, behind], [made], axis=0)
        return made
