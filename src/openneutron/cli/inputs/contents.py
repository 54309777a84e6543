"""What is inside a file, as data: `openneutron inspect` prints it, `openneutron run` takes its inputs from it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from openneutron.cli.inputs.blocks import Blocks, blocks_of_file
from openneutron.cli.inputs.tensor_info import TensorInfo, tensor_info
from openneutron.errors import FormatError
from openneutron.files import kind_of
from openneutron.microcode import abi
from openneutron.microcode.graph_op import attributes_of
from openneutron.microcode.instructions import Program
from openneutron.microcode.walk import executed_calls

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from openneutron.microcode.pte import PlanTensor

KINDS = {"tflite": "LiteRT model", "pte": "ExecuTorch program", "microcode": "Neutron microcode", "onnx": "ONNX model",
         "": "Neutron payload"}  # fmt: skip
ONLY_NXP = "made by NXP's converter: only NXP's runtime can run it"


@dataclass(frozen=True)
class GraphInfo:
    """One NeutronGraph or Neutron delegate: its header, and for open microcode what the program says."""

    where: str
    made_by: str
    target: str
    converter_version: str
    profiling: bool
    microcode_bytes: int
    weights_bytes: int
    kernels_bytes: int
    scratch_bytes: int
    prefetch_bytes: int
    inputs: int
    outputs: int
    calls: int | None
    kernels: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, int | float | bool | str] = field(default_factory=dict)  # of a LiteRT file's operator


@dataclass(frozen=True)
class Contents:
    """Everything `openneutron inspect` shows."""

    file: str
    kind: str
    bytes: int
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    operators: dict[str, int] = field(default_factory=dict)
    delegates: dict[str, int] = field(default_factory=dict)
    graphs: tuple[GraphInfo, ...] = ()
    notes: tuple[str, ...] = ()
    constants: dict[str, list[float | int | bool]] = field(default_factory=dict)  # of methods that give them


def contents_of(data: bytes, where: str) -> Contents:
    """Look into any file we know.

    Example:
        >>> contents_of(Path("model.pte").read_bytes(), "model.pte").graphs[0].target
        'imxrt700'
    """
    kind = kind_of(data)
    if kind == "zip":
        what, hint = "a zip archive, not a model", "`openneutron run --input` and `--calibration` take an .npz"
        if where.endswith(".pt2"):
            what = "an exported program of PyTorch, which is not read without running its author's code"
            hint = f"if you trust it: `openneutron compile {where} --trust` says what is in it"
        raise FormatError(f"this is {what}", where=where, hint=hint)
    if kind == "onnx" or where.endswith(".onnx"):
        return _of_onnx(data, where)
    every = blocks_of_file(data, where, every_method=True)
    graphs = tuple(_graph(blocks) for blocks in every)
    notes = tuple(f"{graph.where}: {ONLY_NXP}" for graph in graphs if graph.made_by == "nxp")
    notes += tuple(f"{blocks.where}: {note}" for blocks in every for note in _wrong_attributes(blocks))
    if kind == "tflite":
        from openneutron.litert.read import read_model

        model = read_model(data, source=where)
        main = model.main
        return Contents(
            where,
            KINDS[kind],
            len(data),
            tuple(tensor_info(main.tensors[i]) for i in main.inputs),
            tuple(tensor_info(main.tensors[i]) for i in main.outputs),
            dict(Counter(op.label for op in main.operators)),
            graphs=graphs,
            notes=notes,
        )
    if kind == "pte":
        from openneutron.microcode.pte import read_plan
        from openneutron.microcode.pte_constants import read_constants

        plan, constants = read_plan(data, where=where), read_constants(data, where=where)
        inputs, outputs = (
            tuple(_of_plan(f"{end}_{at}", one, _encoding(constants, end, at)) for at, one in enumerate(ends))
            for end, ends in (("input", plan.inputs), ("output", plan.outputs))
        )
        notes += tuple(_methods(data, where))
        return Contents(
            where, KINDS[kind], len(data), inputs, outputs, plan.operators, plan.delegates, graphs, notes, constants
        )
    return Contents(where, KINDS[kind], len(data), graphs=graphs, notes=notes)


def _of_onnx(data: bytes, where: str) -> Contents:
    """What an ONNX model says about itself; its open dimensions stand by name."""
    from openneutron.onnx.describe import describe

    found = describe(where if Path(where).is_file() else data, where)
    inputs, outputs = (
        tuple(TensorInfo(one.name, one.dtype, one.shape) for one in side) for side in (found.inputs, found.outputs)
    )
    return Contents(where, KINDS["onnx"], len(data), inputs, outputs, found.operators, notes=found.notes)


def _methods(data: bytes, where: str) -> Iterator[str]:
    """Say what the methods beside `forward` take and give."""
    from openneutron.microcode.pte import FORWARD, computing_methods, read_plan

    for name in computing_methods(data, where=where):
        if name != FORWARD:
            plan = read_plan(data, where=where, with_payloads=False, method=name)
            ends = (
                ", ".join(f"{one.dtype} {'x'.join(map(str, one.shape))}" for one in side)
                for side in (plan.inputs, plan.outputs)
            )
            yield f"method {name} takes {next(ends)} and gives {next(ends)}"


def _of_plan(name: str, tensor: PlanTensor, encoding: str) -> TensorInfo:
    order = "channels last" if tensor.channels_last else ""
    return TensorInfo(name, tensor.dtype or "no tensor", tensor.shape, quantization=encoding, order=order)


def _encoding(constants: Mapping[str, Sequence[float]], end: str, at: int) -> str:
    """Return scale and zero point of an INT8 input or output, which its program gives in constant methods."""
    scale, zero_point = (constants.get(f"forward_{end}{at}_{what}", ()) for what in ("scale", "zp"))
    return f"scale {scale[0]:.9g}, zero point {zero_point[0]:g}" if scale and zero_point else ""


def _graph(blocks: Blocks) -> GraphInfo:
    container = blocks.container
    program: Program | None = None
    if container.made_by == "open":
        program = blocks.program()
    kernels = _kernels(program) if program else {}
    version = f"0x{container.version_word:08X}" if program is None else ".".join(map(str, program.converter_version))
    return GraphInfo(
        where=blocks.where,
        made_by=container.made_by,
        target=program.target if program else blocks.target,
        converter_version=version,
        profiling=container.profiling if program is None else program.profiling,
        microcode_bytes=container.microcode_bytes,
        weights_bytes=container.weights_bytes,
        kernels_bytes=container.kernels_bytes,
        scratch_bytes=container.scratch_bytes if program is None else program.scratch_bytes,
        prefetch_bytes=container.sram_scratch_bytes if program is None else program.prefetch_bytes,
        inputs=container.inputs if program is None else sum(not row.is_output for row in program.tensors),
        outputs=container.outputs if program is None else sum(row.is_output for row in program.tensors),
        calls=container.calls if program is None else sum(kernels.values()),
        kernels=kernels,
        attributes=blocks.attributes,
    )


def _wrong_attributes(blocks: Blocks) -> list[str]:
    """Return what the operator's attributes say otherwise than its microcode, which is what runs."""
    if blocks.container.made_by != "open":
        return []
    right = attributes_of(blocks.microcode, blocks.weights, blocks.program())
    return [
        f"attribute {name} is {value}, the microcode has {right.get(name, 'no such figure')}"
        for name, value in blocks.attributes.items()
        if value != right.get(name)
    ]


def _kernels(program: Program) -> dict[str, int]:
    """Kernel → calls executed in one run, as the report counts them: a call without rows is none."""
    return dict(Counter(abi.by_id(call.kernel).name for call, _, _ in executed_calls(program)))
