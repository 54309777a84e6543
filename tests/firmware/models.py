"""Models with everything a firmware test compares: payload, selection, inputs, and what the host makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.cli.inputs.payloads import payload_of_file
from openneutron.executorch.deliver.embed import embed, input_rows
from openneutron.machine.simulator import DTYPES, Simulator
from openneutron.microcode.instructions import TensorRow
from openneutron.microcode.payload import Payload, parse_payload
from openneutron.microcode.reorder import in_argument_order

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Model:
    """A compiled model in a folder of its own, with model.c and model.h embedding its inputs."""

    folder: Path
    payload: Payload
    selection: Path

    @property
    def inputs(self) -> list[Array]:
        arrays = np.load(self.folder / "inputs.npz")
        return [arrays[name] for name in arrays.files]

    def on_host(self) -> tuple[list[bytes], int]:
        """Outputs and simulated cycles, with memory poisoned before the run."""
        payload = self.payload
        with Simulator(payload.microcode, payload.weights, payload.kernels, poison=True) as simulator:
            outputs = simulator.run(self.inputs)
            return [array.tobytes() for array in outputs], simulator.cycles


def compile_zoo(folder: Path, name: str, **options: Any) -> None:
    """A model of the zoo by way of PyTorch and a `.pte`, its inputs taken from the calibration data."""
    import openneutron as package
    from openneutron import zoo

    model = zoo.load(name)
    program = package.compile(
        model.model,
        model.example_inputs,
        calibration=model.calibration,
        name=name,
        dump_kernel_selection_code=True,
        **options,
    )
    program.save(folder / "source.pte")
    (folder / "kernel_selection.c").write_text(program.kernel_selection)
    _embed(
        folder, "source.pte", lambda rows: [_quantized(model.calibration[0][row.index].numpy(), row) for row in rows]
    )


def compile_litert(folder: Path, data: bytes, **options: Any) -> None:
    """A LiteRT model with random inputs; it must become one NeutronGraph."""
    import openneutron as package

    program = package.compile(data, dump_kernel_selection_code=True, **options)
    program.save(folder / "source.tflite")
    (folder / "kernel_selection.c").write_text(program.kernel_selection)
    generator = np.random.default_rng(5)

    def random(row: TensorRow) -> Array:
        limits = np.iinfo(DTYPES[row.dtype])
        return generator.integers(limits.min, limits.max + 1, row.shape).astype(DTYPES[row.dtype])

    _embed(folder, "source.tflite", lambda rows: [random(row) for row in rows])


def load(folder: Path) -> Model:
    """What `compile_*` left in the folder."""
    payload = parse_payload((folder / "payload.bin").read_bytes(), where=folder.name)
    return Model(folder, payload, folder / "kernel_selection.c")


def _embed(folder: Path, source: str, inputs: Callable[[Sequence[TensorRow]], list[Array]]) -> None:
    """What `openneutron extract-payload` writes, and the inputs."""
    where, data = payload_of_file((folder / source).read_bytes(), source, None)
    data = in_argument_order(data, where=where)
    arrays = inputs(input_rows(parse_payload(data, where=where), where=where))
    made = embed(data, name="model", header="model.h", where=where, inputs=arrays)
    np.savez(folder / "inputs.npz", *arrays)
    (folder / "payload.bin").write_bytes(data)
    (folder / "model.c").write_text(made.source)
    (folder / "model.h").write_text(made.header)


def _quantized(values: Array, row: TensorRow) -> Array:
    """What a program's CPU part hands the delegate: channels last, in steps of the input's scale."""
    if values.shape != row.shape:
        values = np.moveaxis(values, 1, -1)
    steps = np.rint(values / row.scale) + row.zero_point
    return np.clip(steps, -128, 127).astype(np.int8).reshape(row.shape)
