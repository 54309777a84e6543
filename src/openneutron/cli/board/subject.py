"""What a command sends to a board: the bytes to upload, the inputs they take, and what their outputs should be.

A file with open microcode is sent as its delegate's payload, which the open runtime's image takes. Any other file is sent
whole.

Example:
    >>> subject = load_subject(Path("model_npu.tflite"), board="frdmmcxn947")
    >>> subject.protocol
    'tflm'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from openneutron.errors import OptionError
from openneutron.files import kind_of, read_file
from openneutron.litert.graph import Tensor
from openneutron.modelrunner.connect import EXECUTORCH, TFLM

if TYPE_CHECKING:
    from openneutron.microcode.payload import Payload
    from openneutron.modelrunner.answers import BoardModel, BoardRun

Array = npt.NDArray[Any]

OPEN_NOTE = "open microcode: its NeutronGraph alone is sent, for the image of the open runtime; NXP's driver refuses it"


@dataclass(frozen=True)
class Subject:
    """A model for a board; `orders` is how each input lies in memory, () as it is. `payload` is there for open microcode."""

    file: Path
    data: bytes
    upload: bytes
    protocol: str
    inputs: tuple[Tensor, ...]
    orders: tuple[tuple[int, ...], ...]
    payload: Payload | None = None
    notes: tuple[str, ...] = ()

    def arrays(self, given: Path | None, seed: int) -> list[Array]:
        """Return the inputs of a file in the model's order, or seeded random ones."""
        from openneutron.analyze.data.arrays import read_arrays
        from openneutron.run.given import bind_inputs, random_inputs

        if given is None:
            return random_inputs(self.inputs, seed=seed)
        return bind_inputs(self.inputs, read_arrays(given), source=str(self.file))

    def bytes_of(self, arrays: Sequence[Array]) -> list[bytes]:
        """Return the inputs as they lie in the board's memory."""
        turned = [array.transpose(order) if order else array for array, order in zip(arrays, self.orders, strict=True)]
        return [np.ascontiguousarray(array).tobytes() for array in turned]


def load_subject(file: Path, *, board: str = "") -> Subject:
    """Read a model file and check it against the limits of the runner that will take it."""
    from openneutron.errors import FormatError
    from openneutron.modelrunner.limits import board_of, check_model, check_program

    data, where = read_file(file), str(file)
    if board:
        board_of(board)  # a name that is unknown is refused whatever the file is
    kind = kind_of(data)
    if kind not in ("pte", "tflite"):
        hint = "compile it first: `openneutron compile`" if kind else "`openneutron inspect` says what it is"
        raise FormatError("a board takes .pte and .tflite files", where=where, hint=hint)
    if _is_open(data, where):
        return _open_subject(file, data)
    if kind == "pte":
        from openneutron.cli.inputs.frames import number_inputs
        from openneutron.microcode.pte import read_plan

        check_program(data, where, board)
        plan = read_plan(data, where=where)
        orders = tuple(one.dim_order for one in plan.inputs)
        return Subject(file, data, data, EXECUTORCH, tuple(number_inputs(plan.inputs)), orders)
    from openneutron.cli.inputs.frames import inputs_of

    check_model(data, where, board)
    inputs = tuple(inputs_of(data, where))
    return Subject(file, data, data, TFLM, inputs, ((),) * len(inputs))


def outputs_of(run: BoardRun, model: BoardModel) -> dict[str, Array]:
    """Return the outputs of a run by name, with the dimensions in the order of their shapes."""
    orders = (
        [one.dim_order for one in model.outputs] if len(model.outputs) == len(run.outputs) else [()] * len(run.outputs)
    )
    return {one.name: one.array(order) for one, order in zip(run.outputs, orders, strict=True)}


def references(
    subject: Subject, reference: Path | None, samples: Sequence[Sequence[Array]]
) -> dict[str, list[dict[str, Array]]]:
    """Return the expected outputs of each sample, by name of the arithmetic: `exact`, and `silicon` where it is defined.

    Open microcode is its own reference. What NXP's converter made is compared with `reference`: the model it came from, or an
    open compile of it.
    """
    from openneutron.board.rounding import EXACT, SILICON, silicon_file

    if subject.payload is not None and reference is None:
        payload = subject.payload
        return {name: _simulate(payload, samples, silicon=name == SILICON) for name in (EXACT, SILICON)}
    file = reference or subject.file
    data, where = subject.data if reference is None else read_file(file), str(file)
    if reference is None and (subject.protocol == EXECUTORCH or _is_converted(data, where)):
        raise OptionError(
            "NXP's microcode does not run here, so there is nothing to compare with", where=where,
            hint="name the model it came from, or an open compile of it: --reference model.tflite",
        )  # fmt: skip
    compiled = data if _is_open(data, where) else _compile_open(data, where)
    found = {EXACT: _run(data if kind_of(data) == "tflite" else compiled or data, where, samples)}
    if compiled is not None:
        found[SILICON] = _run(silicon_file(compiled, where=where), where, samples)
    return found


def _is_converted(data: bytes, where: str) -> bool:
    from openneutron.cli.inputs.blocks import blocks_of_file

    return bool(blocks_of_file(data, where))


def _is_open(data: bytes, where: str) -> bool:
    from openneutron.cli.inputs.blocks import blocks_of_file

    return any(blocks.container.made_by == "open" for blocks in blocks_of_file(data, where))


def _open_subject(file: Path, data: bytes) -> Subject:
    from openneutron.cli.inputs.blocks import blocks_of_file
    from openneutron.cli.inputs.payloads import bordered_payload
    from openneutron.executorch.deliver.embed import input_tensors
    from openneutron.microcode.payload import parse_payload
    from openneutron.microcode.reorder import in_argument_order

    graphs = len(blocks_of_file(data, str(file)))
    if graphs > 1:
        raise OptionError(
            f"it has {graphs} NeutronGraphs, and the open runtime's image takes a model that is one", where=str(file),
            hint="`openneutron compile` says what stays on the CPU between them",
        )  # fmt: skip
    where, blob, border = bordered_payload(data, file.name, None)
    blob = in_argument_order(blob, where=where)
    payload = parse_payload(blob, where=where)
    inputs = tuple(input_tensors(payload, border.inputs if border else (), where=where))
    notes = (OPEN_NOTE, *(border.notes if border else ()))
    return Subject(file, data, blob, EXECUTORCH, inputs, ((),) * len(inputs), payload, notes)


def _simulate(payload: Payload, samples: Sequence[Sequence[Array]], *, silicon: bool = False) -> list[dict[str, Array]]:
    from openneutron.board.rounding import silicon_blocks
    from openneutron.machine.simulator import Simulator

    microcode, weights = payload.microcode, payload.weights
    if silicon:
        microcode, weights = silicon_blocks(microcode, weights, payload.kernels)
    with Simulator(microcode, weights, payload.kernels) as simulator:
        runs = [[value.copy() for value in simulator.run(list(arrays))] for arrays in samples]
    return [{f"output_{at}": value for at, value in enumerate(run)} for run in runs]


def _compile_open(data: bytes, where: str) -> bytes | None:
    """An open compile of a LiteRT model; None where nothing of it has a multiplier."""
    import openneutron

    if kind_of(data) != "tflite":
        raise OptionError(
            "it is neither a LiteRT model nor an open compile", where=where,
            hint="give the .tflite the model came from, or compile its source with the open converter",
        )  # fmt: skip
    # Stored without coding, so that silicon's multipliers fit where ours were.
    program = openneutron.compile(data, passes_off=("code_weights", "pack_code"))
    return program.tflite if program.report.totals.neutron_graphs else None


def _run(data: bytes, where: str, samples: Sequence[Sequence[Array]]) -> list[dict[str, Array]]:
    if kind_of(data) == "pte":
        from openneutron.executorch.run.arrays import run_arrays
        from openneutron.executorch.run.runtime import load_program

        program = load_program(data, where=where)
        runs = [run_arrays(program.run, arrays) for arrays in samples]
        return [{f"output_{at}": value for at, value in enumerate(run)} for run in runs]
    from openneutron.run.runner import LiteRtRunner

    runner, found = LiteRtRunner(data, source=where), []
    for arrays in samples:
        runner.reset()  # the runner on the board has no state of an earlier run either
        found.append(dict(runner.run(list(arrays)).outputs))
    return found
