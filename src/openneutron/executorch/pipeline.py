"""The whole way: module → export → quantize → partition → compile → `.pte`, with seconds per stage."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from openneutron.errors import OpenNeutronError, OptionError
from openneutron.executorch.backend import Partition
from openneutron.executorch.compile_spec import NeutronOptions, to_specs
from openneutron.executorch.export import (
    Inputs,
    calibrate,
    check_program,
    converted,
    evaluation,
    export,
    prepare,
)
from openneutron.executorch.merge import merge_reports
from openneutron.executorch.partitioner import NeutronPartitioner
from openneutron.executorch.passes.edge.make_islands_contiguous import Copies, make_islands_contiguous
from openneutron.executorch.quantizer import NeutronQuantizer
from openneutron.executorch.runtime import SUPPORTED_EXECUTORCH
from openneutron.executorch.seal import seal_pte
from openneutron.executorch.stages import Progress, Stages
from openneutron.program import Program
from openneutron.report.model import Report
from openneutron.selection import is_ours, merge


@dataclass(frozen=True)
class Built:
    """A compiled program with what comparisons need.

    `quantized` is the converted PT2E module, `edge` the lowered Edge program, `partitions` hold LiteRT models.
    """

    pte: bytes
    report: Report
    partitions: tuple[Partition, ...]
    quantized: GraphModule | None
    edge: ExportedProgram


def compile_module(
    source: torch.nn.Module | ExportedProgram,
    example_inputs: Inputs | None,
    *,
    calibration: Sequence[Inputs] | None = None,
    progress: Progress | None = None,
    name: str = "",
    per_channel: bool = False,
    channels_last: bool = False,
    dump_kernel_selection_code: bool = False,
    dump_intermediates: bool = False,
    **options: Any,
) -> Program:
    """Compile a PyTorch module, or an exported quantized program, to a `Program`; `options` are `NeutronOptions`'.

    Example:
        >>> program = compile_module(model, (image,), calibration=[(image,)], target="imxrt700")
    """
    built = build(
        source, example_inputs, calibration=calibration, progress=progress, name=name, per_channel=per_channel,
        channels_last=channels_last, dump_kernel_selection_code=dump_kernel_selection_code,
        dump_intermediates=dump_intermediates, **options,
    )  # fmt: skip
    selections = tuple(p.kernel_selection_code for p in built.partitions if p.kernel_selection_code)
    dumps: dict[str, bytes | str] = {}
    for partition in built.partitions if dump_intermediates else ():
        dumps |= partition.files()
    return Program(
        built.pte,
        "pte",
        built.report,
        merged_selection(selections),
        dumps,
        built.quantized,
        kernel_selections=selections,
    )


def merged_selection(selections: Sequence[str]) -> str:
    """The selection for all partitions; "" when there are several of NXP's, which only NXP's own tool merges."""
    if len(selections) < 2:
        return "".join(selections)
    files = [(f"partition {index}", code) for index, code in enumerate(selections)]
    return merge(files) if all(is_ours(code) for code in selections) else ""


def build(
    source: torch.nn.Module | ExportedProgram,
    example_inputs: Inputs | None = None,
    *,
    calibration: Sequence[Inputs] | None = None,
    progress: Progress | None = None,
    name: str = "",
    per_channel: bool = False,
    channels_last: bool = False,
    target: str = "imxrt700",
    **options: Any,
) -> Built:
    """As `compile_module`, keeping the quantized module and each partition."""
    check_executorch()
    stages = Stages(progress)
    spec = NeutronOptions(config=target, **options)
    quantized: GraphModule | None = None
    if isinstance(source, ExportedProgram):
        program = source
    else:
        if example_inputs is None or not calibration:
            raise OptionError("example_inputs and calibration are needed", hint="give both, or a quantized program")
        quantized, program = quantize(
            source, example_inputs, calibration, per_channel=per_channel, channels_last=channels_last,
            stages=stages,
        )  # fmt: skip
    check_program(program, from_module=quantized is not None)
    pte, partitioner, edge, copies = lower_program(program, spec, stages)
    partitions = list(partitions_of(edge.graph_module))
    report = merge_reports(
        partitions, partitioner.verdicts, target=target, converter=spec.converter, source=name or type(source).__name__
    )
    report = dataclasses.replace(
        report,
        seconds=_seconds(stages, partitions),
        files={"pte": len(pte)},
        passes={**report.passes, "make_islands_contiguous": copies.count},
        notes=(*report.notes, *_notes(copies)),
    )
    return Built(pte, report, tuple(partitions), quantized, edge)


def quantize(
    model: torch.nn.Module,
    example_inputs: Inputs,
    calibration: Sequence[Inputs],
    *,
    per_channel: bool = False,
    channels_last: bool = False,
    stages: Stages | None = None,
) -> tuple[GraphModule, ExportedProgram]:
    """Post-training quantization: the converted PT2E module, and its exported program."""
    stages = stages or Stages()
    inputs = _in_layout(example_inputs, channels_last)
    with evaluation(model):
        with stages("exporting"):
            exported = export(model, inputs)
        with stages("preparing for quantization"):
            prepared = prepare(exported, NeutronQuantizer(per_channel=per_channel))
        with stages("calibrating"):
            calibrate(prepared, [_in_layout(batch, channels_last) for batch in calibration])
        with stages("quantizing"):
            quantized = converted(prepared)
        with stages("exporting again"):
            return quantized, export(quantized, inputs, what="the quantized model")


def lower_program(
    program: ExportedProgram, spec: NeutronOptions, stages: Stages
) -> tuple[bytes, NeutronPartitioner, ExportedProgram, Copies]:
    """Partition, compile and serialize: the sealed `.pte`, the partitioner, the Edge program, border copies."""
    import executorch.kernels.quantized  # noqa: F401  without it to_executorch knows no quantize.out
    from executorch.exir import to_edge_transform_and_lower

    partitioner = NeutronPartitioner(to_specs(spec))
    with stages("partitioning and compiling"):
        edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    copies = make_islands_contiguous(edge.exported_program().graph_module)
    # to_executorch rewrites the graph in place; comparisons want it as it was.
    program = edge.exported_program()
    lowered = program._update(GraphModule(program.graph_module, copy.deepcopy(program.graph)), program.graph_signature)
    with stages("writing the program"):
        executorch_program = edge.to_executorch()
        pte = seal_pte(bytes(executorch_program.buffer))
    return pte, partitioner, lowered, copies


def partitions_of(module: GraphModule) -> Iterator[Partition]:
    """What was learnt about each delegate of a lowered program, in order of execution."""
    from executorch.exir.delegate import executorch_call_delegate

    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is executorch_call_delegate:
            found = getattr(module, node.args[0].target).meta.get("_delegate_info_meta")
            if isinstance(found, Partition):
                yield found


def check_executorch() -> None:
    """An `OpenNeutronError` when executorch is missing or of another minor version."""
    try:
        found = version("executorch")
    except PackageNotFoundError as error:
        raise OpenNeutronError(
            "executorch is not installed", hint=f"pip install 'executorch>={SUPPORTED_EXECUTORCH},<1.6'"
        ) from error
    if found.split(".")[:2] != SUPPORTED_EXECUTORCH.split("."):
        raise OpenNeutronError(
            f"executorch {found} is installed, this OpenNeutron works with {SUPPORTED_EXECUTORCH}",
            hint=f"pip install 'executorch=={SUPPORTED_EXECUTORCH}.*'",
        )


def _in_layout(inputs: Inputs, channels_last: bool) -> Inputs:
    """Inputs as the program will store them: dense, images channels-last on request."""
    if channels_last:
        return tuple(x.to(memory_format=torch.channels_last) if x.dim() == 4 else x.contiguous() for x in inputs)
    return tuple(x if _is_dense(x) else x.contiguous() for x in inputs)


def _is_dense(x: torch.Tensor) -> bool:
    return x.is_contiguous() or (x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last))


def _notes(copies: Copies) -> tuple[str, ...]:
    if not copies.count:
        return ()
    return (f"{copies.count} tensors ({copies.bytes:,} bytes) are copied to contiguous order for operators on the CPU",)


def _seconds(stages: Stages, partitions: Sequence[Partition]) -> dict[str, float]:
    compiler = sum(partition.report.seconds.get("compiler", 0.0) for partition in partitions)
    return {**stages.seconds, "compiler": compiler}
