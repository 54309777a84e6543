"""The model that NXP's converter made, for NXP's runtime: its resolver, arena, samples and C++ around TensorFlow Lite Micro.

Nothing here runs it: the expected outputs are those of the model it came from, by LiteRT's exact arithmetic and by the
rounding that silicon is assumed to have.

Example:
    >>> npu = npu_model(data, "model_npu.tflite", Path("model.tflite"), load("frdmmcxn947"), count=2, seed=0, inputs=())
    >>> npu.operators, npu.arena_bytes
    (('Dequantize', 'Softmax'), 50176)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from openneutron.board.arena import Step, arena_bytes
from openneutron.board.rounding import EXACT, SILICON
from openneutron.board.sdk import rules
from openneutron.cli.board.subject import Subject, references
from openneutron.errors import OptionError
from openneutron.executorch.deliver.embed import word_array
from openneutron.files import kind_of, kind_of_file, read_file
from openneutron.litert.graph import Graph
from openneutron.litert.read import read_model
from openneutron.microcode.container import container_of
from openneutron.microcode.encode import align
from openneutron.microcode.graph_op import BLOCKS, is_graph_op
from openneutron.modelrunner.connect import TFLM
from openneutron.nxp.converted import check_same_model, converted_for
from openneutron.project.boards import Board, load, names
from openneutron.project.samples import Array, c_text

# What NXP asks for beside the planned memory: the converter's total and 5 % (SDK's tflm_label_image readme).
_SPARE = 1.05
_PAGE = 1024  # arenas are whole KiB
# What follows `Add` in the methods of TFLM's MicroMutableOpResolver (tensorflow/lite/micro/micro_mutable_op_resolver.h).
_METHODS = (
    "Abs", "Add", "AddN", "ArgMax", "ArgMin", "AssignVariable", "AveragePool2D", "BatchMatMul", "BatchToSpaceNd",
    "BroadcastArgs", "BroadcastTo", "CallOnce", "Cast", "Ceil", "Concatenation", "Conv2D", "Cos", "CumSum",
    "DepthToSpace", "DepthwiseConv2D", "Dequantize", "Div", "DynamicUpdateSlice", "Elu", "EmbeddingLookup", "Equal",
    "Exp", "ExpandDims", "Fill", "Floor", "FloorDiv", "FloorMod", "FullyConnected", "Gather", "GatherNd", "Greater",
    "GreaterEqual", "HardSwish", "If", "L2Normalization", "L2Pool2D", "LeakyRelu", "Less", "LessEqual", "Log",
    "LogicalAnd", "LogicalNot", "LogicalOr", "Logistic", "LogSoftmax", "Maximum", "MaxPool2D", "Mean", "Minimum",
    "MirrorPad", "Mul", "Neg", "NotEqual", "Pack", "Pad", "PadV2", "Prelu", "Quantize", "ReadVariable", "ReduceMax",
    "Relu", "Relu6", "Reshape", "ResizeBilinear", "ResizeNearestNeighbor", "Round", "Rsqrt", "SelectV2", "Shape",
    "Sin", "Slice", "Softmax", "SpaceToBatchNd", "SpaceToDepth", "Split", "SplitV", "Sqrt", "Square",
    "SquaredDifference", "Squeeze", "StridedSlice", "Sub", "Sum", "Svdf", "Tanh", "Transpose", "TransposeConv",
    "UnidirectionalSequenceLSTM", "Unpack", "VarHandle", "While", "ZerosLike",
)  # fmt: skip
_BY_CODE = {method.lower(): method for method in _METHODS}


@dataclass(frozen=True)
class NpuModel:
    """A converted LiteRT file with what an application around it needs; arrays are in the model's order."""

    data: bytes
    operators: tuple[str, ...]
    arena_bytes: int
    inputs: tuple[tuple[Array, ...], ...]
    exact: tuple[tuple[Array, ...], ...]
    silicon: tuple[tuple[Array, ...], ...]
    pools: tuple[int, int] | None = None  # of an ExecuTorch program: bytes for its method, and for each run

    @property
    def flash_bytes(self) -> int:
        """The file and its samples."""
        arrays = (array for one in (self.inputs, self.exact, self.silicon) for row in one for array in row)
        return len(self.data) + sum(align(array.nbytes) for array in arrays)


def npu_model(
    data: bytes, where: str, source: Path, board: Board, *, inputs: Sequence[Path], count: int, seed: int
) -> NpuModel:
    """Read what NXP's converter made of the LiteRT model `source`; an `OptionError` says why it is something else."""
    check_board(board)
    if kind_of(data) != "tflite" or kind_of_file(source) != "tflite":
        raise OptionError(
            "a build with NXP's library is made of LiteRT files, before and after NXP's converter", where=where,
            hint="give both as .tflite",
        )  # fmt: skip
    model, before = read_model(data, source=where), read_model(read_file(source), source=str(source))
    graph = model.main
    made = [container_of(graph, op, where=where).made_by for op in graph.operators if is_graph_op(op)]
    if "nxp" not in made or "open" in made:
        raise OptionError(
            "NXP's converter did not make it, and NXP's driver runs nothing else", where=where,
            hint="make it with `openneutron compile --converter nxp`, or with NXP's tools",
        )  # fmt: skip
    chip = converted_for(model.description)
    if chip and chip != board.chip:
        raise OptionError(
            f"it was converted for {chip}, and the NPU of {board.name} is that of {board.chip}", where=where,
            hint=f"convert the model with --target {board.chip}",
        )  # fmt: skip
    check_same_model(
        graph, before.main, where=where, source_name=str(source),
        hint="--npu-model must be what NXP's converter made of the model",
    )  # fmt: skip
    tensors = tuple(graph.tensors[index] for index in graph.inputs)
    subject = Subject(Path(where), data, data, TFLM, tensors, ((),) * len(tensors))
    samples = [subject.arrays(path, seed) for path in inputs]
    samples = samples or [subject.arrays(None, seed + at) for at in range(count)]
    found = references(subject, source, samples)
    exact = _in_order(found[EXACT])
    silicon = _in_order(found[SILICON]) if SILICON in found else exact
    runs = tuple(tuple(np.ascontiguousarray(array) for array in one) for one in samples)
    return NpuModel(data, resolver_methods(graph, where), suggested_arena(graph, board.chip), runs, exact, silicon)


def check_board(board: Board) -> None:
    """Refuse a board for which no build with NXP's library is made."""
    if board.npu_ram is None:
        raise OptionError(
            "no build with NXP's library is made for it", where=board.name,
            hint=f"boards that have one: {', '.join(name for name in names() if load(name).npu_ram)}",
        )  # fmt: skip


def check_npu_sizes(npu: NpuModel, board: Board) -> None:
    """Refuse what does not fit the board's regions; TensorFlow Lite Micro's and NXP's code come on top of it."""
    what, region = ("the arena", board.npu_ram) if npu.pools is None else ("the pools", board.npu_pools)
    assert region is not None  # such boards were refused before anything was read
    rows = [(f"RAM for {what}", npu.arena_bytes, region), ("flash", npu.flash_bytes, board.flash)]
    if board.npu_model is not None:
        rows.append(("RAM for the model", len(npu.data), board.npu_model))
    for what, need, memory in rows:
        if need > memory.bytes:
            raise OptionError(
                f"NXP's build lacks {need - memory.bytes:,} bytes of {what}: {need:,} of {memory.bytes:,}", where=board.name,
                hint="`openneutron fits` says what makes it smaller; the regions are those of the SDK's linker scripts",
            )  # fmt: skip


def resolver_methods(graph: Graph, where: str) -> tuple[str, ...]:
    """Return what follows `Add` in the resolver's methods, for each kind of operator outside of the NeutronGraphs."""
    codes = sorted({op.custom_code or op.code for op in graph.operators if not is_graph_op(op)})
    methods = [_BY_CODE.get(code.replace("_", "").lower(), "") for code in codes]
    missing = [code for code, method in zip(codes, methods, strict=True) if not method]
    if missing:
        raise OptionError(
            f"TensorFlow Lite Micro has no operator for {', '.join(missing)}", where=where,
            hint="change the model so that nothing of it is left to that operator",
        )  # fmt: skip
    return tuple(methods)


def suggested_arena(graph: Graph, chip: str) -> int:
    """Return kTensorArenaSize: TFLM's plan for the file on a chip, a twentieth more, in whole KiB."""
    steps = [_step(graph, index) for index in range(len(graph.operators))]
    return -(-int(arena_bytes(graph, steps, rules(chip).interpreter_bytes) * _SPARE) // _PAGE) * _PAGE


def npu_arrays(npu: NpuModel, title: str) -> dict[str, str]:
    """Return the C sources with the model and its samples, by file name."""
    sizes = {kind: len(row[0]) for kind, row in (("inputs", npu.inputs), ("outputs", npu.exact))}
    header = [
        "/* The model that NXP's converter made, as it is in the file; made by OpenNeutron. */",
        "#ifndef NPU_MODEL_H", "#define NPU_MODEL_H", "", "#include <stdint.h>", "",
        "#ifdef __cplusplus", 'extern "C" {', "#endif", "", f"#define NPU_MODEL_BYTES {len(npu.data)}u",
        "extern const uint32_t npu_model[];", "", "#ifdef __cplusplus", "}", "#endif", "#endif",
    ]  # fmt: skip
    samples = [
        "/* Inputs, and the outputs expected of them: LiteRT's exact values, and those of silicon's rounding. */",
        "#ifndef NPU_SAMPLES_H", "#define NPU_SAMPLES_H", "", "#include <stdint.h>", "",
        f"#define NPU_TITLE {c_text(title)}", f"#define NPU_SAMPLES {len(npu.inputs)}u",
        f"#define NPU_INPUTS {sizes['inputs']}u", f"#define NPU_OUTPUTS {sizes['outputs']}u", "",
        "#ifdef __cplusplus", 'extern "C" {', "#endif", "",
        "extern const void *const npu_inputs[NPU_SAMPLES][NPU_INPUTS];",
        "extern const void *const npu_exact[NPU_SAMPLES][NPU_OUTPUTS], *const npu_silicon[NPU_SAMPLES][NPU_OUTPUTS];",
        "extern const uint32_t npu_input_bytes[NPU_INPUTS], npu_output_bytes[NPU_OUTPUTS];", "",
        "#ifdef __cplusplus", "}", "#endif", "#endif",
    ]  # fmt: skip
    model = [
        '#include "npu_model.h"',
        "",
        '#include "npu_place.h"',
        "",
        *_place_array(word_array("npu_model", npu.data, section=False)),
    ]
    return {
        "npu_model.h": _text(header),
        "npu_model.c": _text(model),
        "npu_samples.h": _text(samples),
        "npu_samples.c": _text(list(_samples(npu))),
    }


def _samples(npu: NpuModel) -> Iterator[str]:
    yield '#include "npu_samples.h"'
    for kind, runs in (("inputs", npu.inputs), ("exact", npu.exact), ("silicon", npu.silicon)):
        rows = []
        for number, arrays in enumerate(runs):
            names = [f"{kind}_{number}_{at}" for at in range(len(arrays))]
            for name, array in zip(names, arrays, strict=True):
                yield ""
                yield from word_array(name, array.tobytes(), local=True, section=False)
            rows.append(f"    {{{', '.join(names)}}},")
        width = "NPU_INPUTS" if kind == "inputs" else "NPU_OUTPUTS"
        yield ""
        yield f"const void *const npu_{kind}[NPU_SAMPLES][{width}] = {{"
        yield from rows
        yield "};"
    yield ""
    for kind, arrays in (("input", npu.inputs[0]), ("output", npu.exact[0])):
        listed = ", ".join(str(array.nbytes) for array in arrays)
        yield f"const uint32_t npu_{kind}_bytes[NPU_{kind.upper()}S] = {{{listed}}};"


def _place_array(lines: Iterator[str]) -> Iterator[str]:
    """The model's array where the board's memory asks for it."""
    yield f"NPU_MODEL_PLACE {next(lines)}"
    yield from lines


def _in_order(runs: list[dict[str, Array]]) -> tuple[tuple[Array, ...], ...]:
    """The outputs of each run; they come in the model's order."""
    return tuple(tuple(np.ascontiguousarray(array) for array in run.values()) for run in runs)


def _step(graph: Graph, index: int) -> Step:
    op = graph.operators[index]
    if not is_graph_op(op):
        return Step(tuple(op.inputs), tuple(op.outputs), operator=index)
    container = container_of(graph, op)
    reads, writes = tuple(op.inputs[: -len(BLOCKS)]), tuple(op.outputs[: container.outputs])
    return Step(reads, writes, container.scratch_bytes)


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
