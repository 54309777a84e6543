"""A NeutronGraph, in the simulator; samples of one model also many at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openneutron.errors import FormatError
from openneutron.litert.graph import Graph, Operator
from openneutron.machine.batch import Block, Copies, rows_of
from openneutron.machine.simulator import DTYPES, Simulator, TensorInfo
from openneutron.microcode.container import container_of
from openneutron.microcode.graph_op import Compiled, blocks_of
from openneutron.microcode.table import ALIGNMENT
from openneutron.run.steps import Array

ONLY_NXP = "only NXP's runtime runs it; `openneutron inspect` shows its header"


@dataclass
class NeutronStep:
    """One NeutronGraph in the simulator."""

    simulator: Simulator
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    copies: Copies

    @property
    def keeps_state(self) -> bool:
        return self.simulator.info.state_bytes > 0

    def block(self, samples: list[list[Array]]) -> Block[tuple[Array, ...]]:
        """Samples for the driver."""
        inputs = [[_align(value) for value in one] for one in samples]
        sizes = [-(-tensor.bytes // ALIGNMENT) * ALIGNMENT for tensor in self.simulator.outputs]
        memory = [_align(np.empty(size * len(samples), np.uint8)) for size in sizes]

        def results(done: int, _alive: object = inputs) -> list[tuple[Array, ...]]:
            rows = [
                one.reshape(len(samples), -1)[:done, : t.bytes]
                for one, t in zip(memory, self.simulator.outputs, strict=True)
            ]
            return list(zip(*map(_outputs, rows, self.simulator.outputs), strict=True))

        given = np.array([[value.ctypes.data for value in one] for one in inputs], np.uint64)
        return Block(given, rows_of([one.ctypes.data for one in memory], sizes, len(samples)), results)

    def run(self, values: dict[int, Array]) -> int:
        outputs = self.simulator.run([values[index] for index in self.reads])
        values.update(zip(self.writes, outputs, strict=True))
        return self.simulator.cycles

    def reset(self) -> None:
        self.simulator.reset()


def neutron_step(graph: Graph, op: Operator, where: str) -> NeutronStep:
    """The step of an operator that is a NeutronGraph; an error where it is none of ours."""
    compiled = blocks_of(graph, op, outputs=len(op.outputs), where=where)
    if container_of(graph, op, where=where).made_by == "nxp":
        raise FormatError("it was made by NXP's converter", where=where, hint=ONLY_NXP)
    blocks = compiled.microcode, compiled.weights, compiled.kernels
    simulator = Simulator(*blocks, where=where)
    _check_border(graph, compiled, simulator, where)
    copies = Copies(lambda: Simulator(*blocks, threads=1, where=where))
    return NeutronStep(simulator, compiled.inputs, compiled.outputs[: len(simulator.outputs)], copies)


def _check_border(graph: Graph, compiled: Compiled, simulator: Simulator, where: str) -> None:
    """Raise FormatError where a tensor of the model is not what the microcode reads or writes in its place."""
    sides = (("input", compiled.inputs, simulator.inputs), ("output", compiled.outputs, simulator.outputs))
    for kind, indices, rows in sides:
        for position, (index, row) in enumerate(zip(indices, rows, strict=False)):
            tensor = graph.tensors[index]
            if (tensor.dtype.numpy, tensor.nbytes) != (np.dtype(DTYPES[row.dtype]), row.bytes):
                raise FormatError(
                    f"{kind} {position}, tensor {index} ({tensor.name!r}), has {tensor.nbytes} bytes of {tensor.dtype}, its "
                    f"microcode {row.bytes} of {np.dtype(DTYPES[row.dtype])}",
                    where=where,
                )


def _align(value: Array) -> Array:
    """The array, or a copy of it that is aligned as the driver asks."""
    if value.ctypes.data % ALIGNMENT == 0:
        return value
    room = np.empty(value.nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    copy: Array = room[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    copy[...] = value
    return copy


def _outputs(rows: Array, tensor: TensorInfo) -> list[Array]:
    return [row.view(DTYPES[tensor.dtype]).reshape(tensor.shape) for row in rows]
