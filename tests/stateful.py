"""Layers that LiteRT computes with variable tensors, each as a model of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openneutron.litert import DType, GraphBuilder
from openneutron.litert.write import write_model

GATES = ("input", "forget", "cell", "output")


@dataclass(frozen=True)
class Lstm:
    """An integer LSTM."""

    batch: int = 1
    steps: int = 5
    inputs: int = 6
    cells: int = 7
    outputs: int = 7
    seed: int = 0
    time_major: bool = False
    coupled: bool = False
    peephole: bool = False
    normalize: bool = False
    project: bool = False
    projection_bias: bool = True
    cell_exponent: int = -11
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    input_zero: int = 3
    output_zero: int = -4
    hidden_zero: int = -4
    cell_scale: float = 0.0  # instead of the power of two
    activation: str = "TANH"

    def model(self) -> bytes:
        """The layer alone, with random weights that keep the gates away from saturation."""
        rng = np.random.default_rng(self.seed)
        g = GraphBuilder()

        def constant(name: str, shape: tuple[int, ...], dtype: DType, scale: float, most: int) -> int:
            data = rng.integers(-most, most + 1, shape)
            return g.tensor(name, shape, dtype, scale, 0, data=data)

        head = (self.steps, self.batch) if self.time_major else (self.batch, self.steps)
        x = g.tensor("x", (*head, self.inputs), DType.INT8, 1 / 64, self.input_zero)
        y = g.tensor("y", (*head, self.outputs), DType.INT8, 1 / 128, self.output_zero)
        slots = [-1] * 24
        slots[0] = x
        for at, gate in enumerate(GATES):
            if at == 0 and self.coupled:
                continue
            scale = float(rng.uniform(0.002, 0.02))
            slots[1 + at] = constant(f"{gate}_x", (self.cells, self.inputs), DType.INT8, scale, 127)
            slots[5 + at] = constant(f"{gate}_h", (self.cells, self.outputs), DType.INT8, scale * 0.7, 127)
            slots[12 + at] = constant(f"{gate}_b", (self.cells,), DType.INT32, scale / 64, 4000)
            if self.peephole and at != 2:
                slots[9 + (at if at < 2 else 2)] = constant(f"{gate}_p", (self.cells,), DType.INT16, 2e-5, 32767)
            if self.normalize:
                slots[20 + at] = constant(f"{gate}_n", (self.cells,), DType.INT16, 3e-5, 32767)
        if self.project:
            slots[16] = constant("projection", (self.outputs, self.cells), DType.INT8, 0.01, 127)
            if self.projection_bias:
                slots[17] = constant("projection_b", (self.outputs,), DType.INT32, 0.01 / 128, 3000)
        slots[18] = g.state("h", (self.batch, self.outputs), DType.INT8, 1 / 128, self.output_zero)
        cell_scale = self.cell_scale or 2.0**self.cell_exponent
        slots[19] = g.state("c", (self.batch, self.cells), DType.INT16, cell_scale)
        op = g.op(
            "UNIDIRECTIONAL_SEQUENCE_LSTM", slots, [y], version=3, fused_activation_function=self.activation,
            cell_clip=self.cell_clip, proj_clip=self.projection_clip, time_major=self.time_major,
        )  # fmt: skip
        for gate in GATES:
            op.intermediates.append(g.tensor(f"{gate}_sum", (1,), DType.INT16, 2.0**-12 * 1.3, 0))
        hidden_zero = self.hidden_zero if self.project else self.output_zero
        op.intermediates.append(g.tensor("hidden", (1,), DType.INT8, 1 / 128, hidden_zero))
        return write_model(g.finish([x], [y]))


@dataclass(frozen=True)
class Svdf:
    """An SVDF with a 16-bit memory."""

    batch: int = 1
    inputs: int = 6
    units: int = 5
    rank: int = 2
    steps: int = 4
    seed: int = 0
    bias: bool = True
    input_zero: int = 3
    output_zero: int = -7
    activation: str = "RELU"
    memory_type: DType = DType.INT16
    memory_zero: int = 0

    def model(self) -> bytes:
        """The layer alone."""
        rng = np.random.default_rng(self.seed)
        g = GraphBuilder()
        filters = self.units * self.rank
        x = g.tensor("x", (self.batch, self.inputs), DType.INT8, 1 / 64, self.input_zero)
        y = g.tensor("y", (self.batch, self.units), DType.INT8, 0.05, self.output_zero)
        feature = g.tensor(
            "feature", (filters, self.inputs), DType.INT8, 0.01, 0, data=rng.integers(-127, 128, (filters, self.inputs))
        )
        most = 127 if self.memory_type is DType.INT8 else 32767
        time = g.tensor(
            "time", (filters, self.steps), self.memory_type, 1 / most, 0,
            data=rng.integers(-most, most + 1, (filters, self.steps)),
        )  # fmt: skip
        bias = -1
        if self.bias:
            bias = g.tensor(
                "bias", (self.units,), DType.INT32, 2e-9, 0, data=rng.integers(-1 << 24, 1 << 24, self.units)
            )
        memory = g.state("memory", (self.batch, filters * self.steps), self.memory_type, 2e-4, self.memory_zero)
        g.op(
            "SVDF", [x, feature, time, bias, memory], [y], version=3, rank=self.rank,
            fused_activation_function=self.activation,
        )  # fmt: skip
        return write_model(g.finish([x], [y]))
