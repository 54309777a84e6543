"""From a PyTorch module to a `Program`: export, quantize, lower, measure accuracy, report, with the seconds of each stage."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from openneutron.board.merge import merge_stocks, with_interval
from openneutron.errors import OpenNeutronError, OptionError
from openneutron.executorch.capture.checks import check_model, check_samples, check_scales
from openneutron.executorch.capture.export import (
    Inputs,
    check_program,
    check_shapes,
    evaluation,
    export,
    one_thread,
    with_plain_outputs,
)
from openneutron.executorch.compile_spec import spec_options
from openneutron.executorch.deliver.backend import Partition
from openneutron.executorch.deliver.merge import merge_reports, with_modules
from openneutron.executorch.deliver.session import CompileSession
from openneutron.executorch.engines import Engines, engines_of
from openneutron.executorch.fx import is_quantize
from openneutron.executorch.lower.layer_calls import LayerBodies
from openneutron.executorch.partition.passes.keep_layers_whole import contract_layers
from openneutron.executorch.place.whole_program import whole_program
from openneutron.executorch.program_lowering import LoweredProgram, lower_program
from openneutron.executorch.quantize.accuracy import (
    GOOD,
    SAMPLES,
    compare_outputs,
    run_all,
    warnings_of_outputs,
    worst_sqnr,
)
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantize.loss import loss
from openneutron.executorch.quantize.low_bit_modules import with_plain_weights
from openneutron.executorch.quantize.measure.original import run_original
from openneutron.executorch.quantize.measure.piece_labels import piece_labels
from openneutron.executorch.quantize.post_training import quantize_exported
from openneutron.executorch.quantize.states import restore, states_of
from openneutron.executorch.quantize.train.aware import quantize_aware
from openneutron.executorch.run.runtime import runner_of
from openneutron.executorch.stage_times import Progress, Stages
from openneutron.executorch.torch_lock import torch_lock
from openneutron.executorch.upstream.edge_names import forget_same_nodes, info_of
from openneutron.executorch.upstream.names import forget_fake_calls
from openneutron.executorch.upstream.switch import notes as upstream_notes
from openneutron.executorch.upstream.versions import check_executorch
from openneutron.microcode.payload import FRAME, frame_of_pte
from openneutron.microcode.selection import is_ours, merge
from openneutron.options import DEFAULT_TARGET
from openneutron.program import Program
from openneutron.report.facts import figure_of
from openneutron.report.model import OutputAccuracy, Report


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
    if dumps:
        dumps[FRAME] = frame_of_pte(built.pte)
    return Program(
        built.pte,
        "pte",
        built.report,
        merge_selections(selections),
        dumps,
        built.quantized,
        kernel_selections=selections,
        input_names=tuple(map(str, built.edge.graph_signature.user_inputs)),
        loader=runner_of,
    )


def merge_selections(selections: Sequence[str]) -> str:
    """One selection for all partitions; "" for several of NXP's, which only NXP's own tool merges."""
    if len(selections) < 2:
        return "".join(selections)
    files = [(f"partition {index}", code) for index, code in enumerate(selections)]
    return merge(files) if all(is_ours(code) for code in selections) else ""


# A lowering leaves about 1 MB in the caches. After this many they are emptied, which makes the next one a little slower.
_LOWERINGS_KEPT: Final = 16
_lowerings = itertools.count(1)


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Empty the caches of torch and ExecuTorch after every few lowerings; they would grow with each of them."""
    try:
        yield
    finally:
        if next(_lowerings) % _LOWERINGS_KEPT == 0:
            forget_fake_calls()
            forget_same_nodes()


@torch_lock()
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
    target: str = DEFAULT_TARGET,
    recipe: str = "neutron",
    placement: str = "all",
    train: Any = None,
    **options: Any,
) -> Built:
    """Compile as `compile_module` does, and return the quantized module and each partition too.

    `recipe` names the engines, `placement` decides about partitions that the CPU runs faster, and with `train` the model
    is trained with rounding in the loop instead of calibrated. Several threads compile one after the other.
    """
    check_executorch()
    session = CompileSession()
    stages = Stages(progress)
    engines = engines_of(recipe)
    engines.check_target(target)
    chosen = Choices.of(options)
    spec = spec_options({"target": target, **options})
    quantized: GraphModule | None = None
    compared: tuple[OutputAccuracy, ...] = ()
    made: Quantized | None = None
    warnings: tuple[str, ...] = ()
    source, chosen, notes = with_plain_weights(source, chosen)
    if isinstance(source, ExportedProgram):
        source = with_plain_outputs(source)
    if isinstance(source, ExportedProgram) and not calibration:
        program = source
    elif train is not None:
        quantized, program = _train(source, example_inputs, calibration, train, engines, chosen, channels_last, stages)
    else:
        if isinstance(source, ExportedProgram) and any(is_quantize(node) for node in source.graph.nodes):
            raise OptionError("the program is quantized already", hint="leave calibration out")
        if isinstance(source, ExportedProgram) and example_inputs is None:
            example_inputs = _examples(source)
        if example_inputs is None or not calibration:
            raise OptionError("example_inputs and calibration are needed", hint="give both, or a quantized program")
        made = quantize(
            source, example_inputs, calibration, chosen, channels_last=channels_last, stages=stages, engines=engines,
            bodies=session.bodies if engines.neutron else None,
        )  # fmt: skip
        quantized, program, notes, warnings = made.module, made.program, (*notes, *made.notes), made.warnings
    check_program(program, from_module=quantized is not None)
    check_scales(program)
    lowered = lower_program(
        program, spec, stages, int8_io=int8_io, engines=engines, placement=placement, session=session
    )
    if made is not None:
        with stages("measuring accuracy"):
            compared, measured_how = delivered_accuracy(lowered.pte, made, int8_io=int8_io)
            notes = (*notes, *measured_how)
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
        output_sqnr=worst_sqnr(compared),
        outputs=compared,
        notes=(
            *report.notes,
            *_mode_note(source, train),
            *_lowering_notes(lowered),
            *upstream_notes(),
            *map(str, lowered.borders),
            *_output_notes(compared),
            *notes,
        ),
        warnings=(
            *report.warnings,
            *warnings,
            *_unmatched_warnings("operators_not_to_delegate", lowered.unmatched),
            *warnings_of_outputs(compared),
        ),
    )
    if quantized is not None and calibration and report.output_sqnr is not None and report.output_sqnr < GOOD:
        with stages("looking for the layer that loses accuracy"):
            samples = [in_layout(batch, channels_last) for batch in calibration[:SAMPLES]]
            states = states_of(quantized)
            report = dataclasses.replace(report, warnings=(*report.warnings, loss(report, source, quantized, samples)))
            restore(quantized, states)
    return Built(lowered.pte, report, tuple(partitions), quantized, lowered.edge)


def _unmatched_warnings(option: str, patterns: Sequence[str]) -> tuple[str, ...]:
    """Warn of patterns of an option that match nothing."""
    return tuple(f"{option}: {one!r} matches no node, so it has no effect" for one in patterns)


@dataclass(frozen=True)
class Quantized:
    """The converted PT2E module, its exported program, and the results `wanted` of the given model on `samples`.

    `labels` number the pieces that outputs are joined from. `notes` say what methods did, `warnings` say where the given
    model's own result is no number.
    """

    module: GraphModule
    program: ExportedProgram
    samples: Sequence[Inputs]
    wanted: Sequence[Any]
    labels: Sequence[torch.Tensor | None]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def sqnr(self) -> tuple[float, ...]:
        """The module's SQNR in decibels for each output that has one."""
        return tuple(one.sqnr for one in self.compare() if one.sqnr is not None)

    def compare(self) -> tuple[OutputAccuracy, ...]:
        """Measure the module's accuracy; its state stays as it was."""
        states = states_of(self.module)
        with one_thread():
            found = run_all(self.module, self.samples)
        restore(self.module, states)
        return compare_outputs(self.wanted, found, self.labels)


def delivered_accuracy(
    pte: bytes, made: Quantized, *, int8_io: bool
) -> tuple[tuple[OutputAccuracy, ...], tuple[str, ...]]:
    """The accuracy of the written program, measured by running it here, and notes about the measurement.

    A program that cannot run here, or whose inputs and outputs are INT8, is measured as its PT2E module.
    """
    if int8_io:
        return made.compare(), ("accuracy is that of the PT2E module: the program itself takes and gives INT8",)
    try:
        runner = runner_of(pte, "the program")
        return compare_outputs(made.wanted, run_all(runner.run, made.samples), made.labels), ()
    except OpenNeutronError as error:
        return made.compare(), (
            f"accuracy is that of the PT2E module: the program does not run here ({error.message})",
        )


def quantize(
    model: torch.nn.Module | ExportedProgram,
    example_inputs: Inputs,
    calibration: Sequence[Inputs],
    chosen: Choices | None = None,
    *,
    channels_last: bool = False,
    stages: Stages | None = None,
    engines: Engines | None = None,
    bodies: LayerBodies | None = None,
) -> Quantized:
    """Quantize a model after training, and run it in float on a few calibration samples to compare with later.

    With `bodies` recurrent layers are one call each in the program, which only our partitioner knows; their bodies go there.
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
            captured = made.module if bodies is None else contract_layers(made.module, bodies)
            program = export(captured, inputs, what="the quantized model")
        with stages("running the model in float"), one_thread():
            samples = batches[:SAMPLES]
            wanted = run_original(model, samples)
    parts = getattr(quantizer, "quantizers", [quantizer])
    unmatched = [pattern for one in parts for pattern in getattr(one, "unmatched", ())]
    warnings = (*made.warnings, *_unmatched_warnings("exclude", unmatched))
    return Quantized(made.module, program, samples, wanted, piece_labels(exported), made.notes, warnings)


def _train(
    model: torch.nn.Module | ExportedProgram,
    example_inputs: Inputs | None,
    calibration: Sequence[Inputs] | None,
    train: Any,
    engines: Engines,
    chosen: Choices,
    channels_last: bool,
    stages: Stages,
) -> tuple[GraphModule, ExportedProgram]:
    """Train with rounding in the loop; returns the converted PT2E module and its exported program."""
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


def partitions_of(module: GraphModule) -> Iterator[Partition]:
    """What is known about each delegate of a lowered program, in order of execution."""
    from executorch.exir.delegate import executorch_call_delegate

    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is executorch_call_delegate:
            found = info_of(getattr(module, node.args[0].target))
            if isinstance(found, Partition):
                yield found


def _examples(program: ExportedProgram) -> Inputs | None:
    """The inputs a program was exported with, when it kept them and they are tensors."""
    args, kwargs = program.example_inputs or ((), {})
    tensors = bool(args) and not kwargs and all(isinstance(value, torch.Tensor) for value in args)
    return tuple(args) if tensors else None


def in_layout(inputs: Inputs, channels_last: bool) -> Inputs:
    """Inputs as the program stores them: dense, and images channels-last on request."""
    if channels_last:
        return tuple(x.to(memory_format=torch.channels_last) if x.dim() == 4 else x.contiguous() for x in inputs)
    return tuple(x if _is_dense(x) else x.contiguous() for x in inputs)


def _is_dense(x: torch.Tensor) -> bool:
    return x.is_contiguous() or (x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last))


def _mode_note(source: torch.nn.Module | ExportedProgram, train: Any) -> tuple[str, ...]:
    if isinstance(source, ExportedProgram) or train is not None or not source.training:
        return ()
    return ("the model was in training mode: it was compiled as model.eval() makes it",)


def _lowering_notes(lowered: LoweredProgram) -> Iterator[str]:
    copies = lowered.copies
    if copies.count:
        yield f"{copies.count} tensors ({copies.bytes:,} bytes) are copied to contiguous order for operators on the CPU"
    if lowered.retraced:
        yield f"ExecuTorch retraced the program, which takes longer, because of {lowered.retraced}"


def _output_notes(outputs: Sequence[OutputAccuracy]) -> tuple[str, ...]:
    """The accuracy of each output, where the program's one figure does not say it: several outputs, or one without SQNR."""
    if len(outputs) < 2 and all(one.sqnr is not None for one in outputs):
        return ()
    return (f"accuracy of the outputs: {', '.join(map(figure_of, outputs))}",)


def _seconds(stages: Stages, partitions: Sequence[Partition]) -> dict[str, float]:
    compiler = sum(partition.report.seconds.get("compiler", 0.0) for partition in partitions)
    return {**stages.seconds, "compiler": compiler}
