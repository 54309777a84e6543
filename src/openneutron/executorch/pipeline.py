"""The whole way: module → export → quantize → partition → compile → `.pte`, with seconds per stage."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch._export.verifier import SpecViolationError
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.fx import GraphModule

from openneutron.board.merge import merge_stocks, with_interval
from openneutron.errors import OptionError, UnsupportedError
from openneutron.executorch.capture.checks import check_model, check_samples, check_scales
from openneutron.executorch.capture.export import (
    Inputs,
    check_program,
    check_shapes,
    evaluation,
    export,
    with_plain_outputs,
)
from openneutron.executorch.compile_spec import spec_options
from openneutron.executorch.deliver.backend import Partition
from openneutron.executorch.deliver.host_kernels import check_host_convolutions, check_host_kernels
from openneutron.executorch.deliver.known_results import known_results
from openneutron.executorch.deliver.merge import merge_reports, with_modules
from openneutron.executorch.edge.delegate import delegate
from openneutron.executorch.engines import Engines, engines_of
from openneutron.executorch.fx import is_quantize, operator_name, source_line, value_of
from openneutron.executorch.partition.passes.keep_layers_whole import forget_with, with_whole_layers
from openneutron.executorch.partition.passes.make_islands_contiguous import Copies, copies_of, make_islands_contiguous
from openneutron.executorch.partition.passes.remove_border_quantize import Border, remove_border_quantize
from openneutron.executorch.place.whole_program import whole_program
from openneutron.executorch.quantize.accuracy import GOOD, SAMPLES
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantize.loss import loss
from openneutron.executorch.quantize.post_training import quantize_exported
from openneutron.executorch.quantize.states import restore, states_of
from openneutron.executorch.quantize.train.aware import quantize_aware
from openneutron.executorch.run.runtime import runner_of
from openneutron.executorch.stage_times import Progress, Stages
from openneutron.executorch.versions import check_executorch
from openneutron.microcode.pte import read_plan
from openneutron.microcode.seal import seal_pte
from openneutron.microcode.selection import is_ours, merge
from openneutron.options import Options
from openneutron.program import Program
from openneutron.report.model import Node as Verdict
from openneutron.report.model import Report


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
    channels_last: bool = False,
    int8_io: bool = False,
    dump_kernel_selection_code: bool = False,
    dump_intermediates: bool = False,
    **options: Any,
) -> Program:
    """Compile a PyTorch module, or an exported quantized program, to a `Program`; `options` are `Options`'.

    With `int8_io` the program takes and gives INT8: its border quantizes nothing. An exported program that is still in
    float is quantized when there is calibration data.

    Example:
        >>> program = compile_module(model, (image,), calibration=[(image,)], target="imxrt700")
    """
    built = build(
        source, example_inputs, calibration=calibration, progress=progress, name=name,
        channels_last=channels_last, int8_io=int8_io, dump_kernel_selection_code=dump_kernel_selection_code,
        dump_intermediates=dump_intermediates, **options,
    )  # fmt: skip
    selections = tuple(p.kernel_selection_code for p in built.partitions if p.kernel_selection_code)
    dumps: dict[str, bytes | str] = {}
    for partition in built.partitions if dump_intermediates else ():
        dumps |= with_modules(partition, built.report).files()
    return Program(
        built.pte,
        "pte",
        built.report,
        merged_selection(selections),
        dumps,
        built.quantized,
        kernel_selections=selections,
        input_names=tuple(map(str, built.edge.graph_signature.user_inputs)),
        loader=runner_of,
    )


def merged_selection(selections: Sequence[str]) -> str:
    """The selection for all partitions; "" when there are several of NXP's, which only NXP's own tool merges."""
    if len(selections) < 2:
        return "".join(selections)
    files = [(f"partition {index}", code) for index, code in enumerate(selections)]
    return merge(files) if all(is_ours(code) for code in selections) else ""


# A lowering leaves about 1 MB in the caches. After this many they are emptied, which makes the next one a little slower.
_LOWERINGS_KEPT: Final = 16
_lowerings = itertools.count(1)


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Now and then let go of what lowerings leave in caches of the process: torch's of fake calls, ExecuTorch's of nodes."""
    try:
        yield
    finally:
        if next(_lowerings) % _LOWERINGS_KEPT == 0:
            from executorch.exir.backend.utils import is_same_node

            FakeTensorMode.cache_clear()
            is_same_node.cache_clear()


@bounded_memory()
def build(
    source: torch.nn.Module | ExportedProgram,
    example_inputs: Inputs | None = None,
    *,
    calibration: Sequence[Inputs] | None = None,
    progress: Progress | None = None,
    name: str = "",
    channels_last: bool = False,
    int8_io: bool = False,
    target: str = "imxrt700",
    recipe: str = "neutron",
    placement: str = "all",
    train: Any = None,
    **options: Any,
) -> Built:
    """As `compile_module`, keeping the quantized module and each partition.

    `recipe` names the engines, `placement` decides about partitions that the CPU runs faster, and with `train` the model
    is trained with rounding in the loop instead of calibrated.
    """
    check_executorch()
    stages = Stages(progress)
    engines = engines_of(recipe)
    engines.check_target(target)
    chosen = Choices.of(options)
    spec = spec_options({"target": target, **options})
    quantized: GraphModule | None = None
    sqnr: tuple[float, ...] = ()
    remarks: tuple[str, ...] = ()
    if isinstance(source, ExportedProgram):
        source = with_plain_outputs(source)
    if isinstance(source, ExportedProgram) and not calibration:
        program = source
    elif train is not None:
        quantized, program = _trained(
            source, example_inputs, calibration, train, engines, chosen, channels_last, stages
        )
    else:
        if isinstance(source, ExportedProgram) and any(is_quantize(node) for node in source.graph.nodes):
            raise OptionError("the program is quantized already", hint="leave calibration out")
        if isinstance(source, ExportedProgram) and example_inputs is None:
            example_inputs = _examples(source)
        if example_inputs is None or not calibration:
            raise OptionError("example_inputs and calibration are needed", hint="give both, or a quantized program")
        made = quantize(
            source, example_inputs, calibration, chosen, channels_last=channels_last, stages=stages, engines=engines,
            whole_layers=engines.neutron,
        )  # fmt: skip
        quantized, program, sqnr, remarks = made.module, made.program, made.sqnr, made.notes
    check_program(program, from_module=quantized is not None)
    check_scales(program)
    lowered = lower_program(program, spec, stages, int8_io=int8_io, engines=engines, placement=placement)
    partitions = list(partitions_of(lowered.edge.graph_module))
    report = merge_reports(
        partitions, lowered.verdicts, target=target, converter=spec.converter, source=name or type(source).__name__
    )
    whole = whole_program(lowered.edge, partitions, target=target, recipe=recipe, arena_bytes=lowered.arena_bytes)
    report = dataclasses.replace(
        report,
        whole=with_interval(whole, report.totals),
        stock=merge_stocks([partition.report.stock for partition in partitions], whole),
        seconds=_seconds(stages, partitions),
        files={"pte": len(lowered.pte)},
        passes={**report.passes, "make_islands_contiguous": lowered.copies.count},
        output_sqnr=min(sqnr, default=None),
        notes=(
            *report.notes,
            *_mode(source, train),
            *_notes(lowered.copies),
            *map(str, lowered.borders),
            *_each(sqnr),
            *remarks,
        ),
    )
    if quantized is not None and calibration and report.output_sqnr is not None and report.output_sqnr < GOOD:
        with stages("looking for the layer that loses accuracy"):
            samples = [in_layout(batch, channels_last) for batch in calibration[:SAMPLES]]
            states = states_of(quantized)
            report = dataclasses.replace(report, warnings=(*report.warnings, loss(report, source, quantized, samples)))
            restore(quantized, states)
    return Built(lowered.pte, report, tuple(partitions), quantized, lowered.edge)


@dataclass(frozen=True)
class Quantized:
    """The converted PT2E module, its exported program, and the SQNR of each of its outputs against float.

    `notes` say what methods did.
    """

    module: GraphModule
    program: ExportedProgram
    sqnr: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()


def quantize(
    model: torch.nn.Module | ExportedProgram,
    example_inputs: Inputs,
    calibration: Sequence[Inputs],
    chosen: Choices | None = None,
    *,
    channels_last: bool = False,
    stages: Stages | None = None,
    engines: Engines | None = None,
    whole_layers: bool = False,
) -> Quantized:
    """Post-training quantization, and how close it comes on a few calibration samples.

    With `whole_layers` recurrent layers are one call each in the program, which only our partitioner knows.
    """
    check_model(model)
    check_samples(example_inputs, calibration)
    if isinstance(model, ExportedProgram):
        check_shapes(model)
    stages, chosen = stages or Stages(), chosen or Choices()
    quantizer = (engines or engines_of("neutron")).quantizer(chosen)
    inputs = in_layout(example_inputs, channels_last)
    batches = [in_layout(batch, channels_last) for batch in calibration]
    with nullcontext() if isinstance(model, ExportedProgram) else evaluation(model):
        with stages("exporting"):
            exported = model if isinstance(model, ExportedProgram) else export(model, inputs)
        made = quantize_exported(exported, batches, chosen, quantizer, stages=stages)
        with stages("exporting again"):
            captured = with_whole_layers(made.module) if whole_layers else made.module
            program = forget_with(export(captured, inputs, what="the quantized model"))
    return Quantized(made.module, program, made.sqnr, made.notes)


def _trained(
    model: torch.nn.Module | ExportedProgram,
    example_inputs: Inputs | None,
    calibration: Sequence[Inputs] | None,
    train: Any,
    engines: Engines,
    chosen: Choices,
    channels_last: bool,
    stages: Stages,
) -> tuple[GraphModule, ExportedProgram]:
    """Training with rounding in the loop: the converted PT2E module, and its exported program."""
    check_model(model)
    if isinstance(model, ExportedProgram) or example_inputs is None:
        raise OptionError("only a module can be trained", hint="give an nn.Module with example_inputs")
    if calibration:
        raise OptionError("calibration and train are both given", hint="training finds the ranges itself")
    chosen.refuse_methods("they are for quantization after training", "leave them out: training does their work")
    inputs = in_layout(example_inputs, channels_last)
    with stages("training"):
        quantizer = engines.quantizer(chosen, is_qat=True)
        quantized = quantize_aware(model, inputs, quantizer, train, progress=stages.progress)
    with stages("exporting again"):
        return quantized, export(quantized, inputs, what="the quantized model")


@dataclass(frozen=True)
class LoweredProgram:
    """The sealed `.pte`, the Edge program it was written from, and what was learnt on the way."""

    pte: bytes
    edge: ExportedProgram
    verdicts: tuple[Verdict, ...]
    copies: Copies
    borders: tuple[Border, ...]
    arena_bytes: int = 0


def lower_program(
    program: ExportedProgram,
    spec: Options,
    stages: Stages,
    *,
    int8_io: bool = False,
    engines: Engines | None = None,
    placement: str = "all",
) -> LoweredProgram:
    """Partition, compile and serialize; with `int8_io` the border's quantize and dequantize go."""
    import executorch.kernels.quantized  # noqa: F401  without it to_executorch knows no quantize.out
    from executorch.exir import to_edge_transform_and_lower

    engines = engines or engines_of("neutron")
    partitioner = engines.partitioner(spec, placement)
    with stages("partitioning and compiling"):
        try:
            if partitioner is not None and not engines.cortex_m:
                edge = delegate(program, partitioner)
            else:
                edge = to_edge_transform_and_lower(
                    program,
                    partitioner=None if partitioner is None else [partitioner],
                    compile_config=engines.compile_config(),
                )
        except SpecViolationError as error:
            raise _no_core_operator(program, str(error)) from error
    if partitioner is None:
        make_islands_contiguous(edge.exported_program().graph_module)
    borders = remove_border_quantize(edge.exported_program()) if int8_io else []
    if borders and all(border.reason for border in borders):
        raise UnsupportedError(
            f"no input or output can be INT8: {borders[0]}", hint="leave INT8 I/O off, or quantize what reads it"
        )
    with stages("placing leftovers") if engines.cortex_m else nullcontext():
        verdicts = engines.place_leftovers(edge, () if partitioner is None else partitioner.verdicts)
    check_host_convolutions(edge.exported_program().graph)
    copies = copies_of(edge.exported_program().graph_module)
    # to_executorch rewrites the graph in place; comparisons want it as it was.
    program = edge.exported_program()
    lowered = program._update(GraphModule(program.graph_module, copy.deepcopy(program.graph)), program.graph_signature)
    # Gradients are nobody's here, and with them a buffer that the CPU keeps could not be written in place.
    with stages("writing the program"), torch.no_grad(), known_results():
        _keep_first_contents(program)
        executorch_program = edge.to_executorch()
        pte = seal_pte(bytes(executorch_program.buffer))
    gone = {border.node for border in borders if not border.reason}
    verdicts = tuple(verdict for verdict in verdicts if verdict.name not in gone)
    check_host_kernels(tuple(read_plan(pte, where="<pte>").operators), verdicts)
    arenas = executorch_program.executorch_program.execution_plan[0].non_const_buffer_sizes
    return LoweredProgram(pte, lowered, verdicts, copies, tuple(borders), sum(arenas))


def _keep_first_contents(program: ExportedProgram) -> None:
    """Buffers that the CPU keeps begin as the model has them; unasked, ExecuTorch writes down their shapes alone."""
    signature = program.graph_signature
    changed = set(signature.buffers_to_mutate.values())
    for node in program.graph.nodes:
        if node.op == "placeholder" and signature.inputs_to_buffers.get(node.name) in changed:
            node.meta["et_init_buffer"] = True


def _no_core_operator(program: ExportedProgram, message: str) -> UnsupportedError:
    """What to say of an operator that ExecuTorch's verifier refuses; of complex numbers it is their maker's fault."""
    for node in program.graph.nodes:
        value = value_of(node)
        if node.op == "call_function" and isinstance(value, torch.Tensor) and value.is_complex():
            line = source_line(node)
            return UnsupportedError(
                f"{operator_name(node)} ({node.name}{', ' + line if line else ''}) makes complex numbers, which no "
                "operator behind it takes",
                hint="end the model before it, or compute real and imaginary parts as products with a constant matrix",
            )
    found = re.search(r"aten\.\w+\.\w+", message)
    return UnsupportedError(
        f"ExecuTorch has no place for operator {found[0] if found else ''}: it is not among its core operators",
        hint="write the model without it",
    )


def partitions_of(module: GraphModule) -> Iterator[Partition]:
    """What was learnt about each delegate of a lowered program, in order of execution."""
    from executorch.exir.delegate import executorch_call_delegate

    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is executorch_call_delegate:
            found = getattr(module, node.args[0].target).meta.get("_delegate_info_meta")
            if isinstance(found, Partition):
                yield found


def _examples(program: ExportedProgram) -> Inputs | None:
    """The inputs a program was exported with, when it kept them and they are tensors."""
    args, kwargs = program.example_inputs or ((), {})
    tensors = bool(args) and not kwargs and all(isinstance(value, torch.Tensor) for value in args)
    return tuple(args) if tensors else None


def in_layout(inputs: Inputs, channels_last: bool) -> Inputs:
    """Inputs as the program will store them: dense, images channels-last on request."""
    if channels_last:
        return tuple(x.to(memory_format=torch.channels_last) if x.dim() == 4 else x.contiguous() for x in inputs)
    return tuple(x if _is_dense(x) else x.contiguous() for x in inputs)


def _is_dense(x: torch.Tensor) -> bool:
    return x.is_contiguous() or (x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last))


def _mode(source: torch.nn.Module | ExportedProgram, train: Any) -> tuple[str, ...]:
    if isinstance(source, ExportedProgram) or train is not None or not source.training:
        return ()
    return ("the model was in training mode: it was compiled as model.eval() makes it",)


def _notes(copies: Copies) -> tuple[str, ...]:
    if not copies.count:
        return ()
    return (f"{copies.count} tensors ({copies.bytes:,} bytes) are copied to contiguous order for operators on the CPU",)


def _each(sqnr: Sequence[float]) -> tuple[str, ...]:
    if len(sqnr) < 2:
        return ()
    return ("SQNR of the outputs: " + ", ".join(f"{one:.1f} dB" for one in sqnr),)


def _seconds(stages: Stages, partitions: Sequence[Partition]) -> dict[str, float]:
    compiler = sum(partition.report.seconds.get("compiler", 0.0) for partition in partitions)
    return {**stages.seconds, "compiler": compiler}
