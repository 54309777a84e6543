"""From a PyTorch module to a `Program`: export, quantize, lower, measure accuracy, report, with the seconds of each stage."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Final

import torch
from torch.export import ExportedProgram

from openneutron.errors import OptionError
from openneutron.executorch.capture.checks import check_model
from openneutron.executorch.capture.decoder_facts import decoder_constants, is_decoder, with_given
from openneutron.executorch.capture.export import (
    Inputs,
    evaluation,
    export,
    with_plain_outputs,
)
from openneutron.executorch.capture.structure import InputStructure, call_structure
from openneutron.executorch.compile_spec import spec_options
from openneutron.executorch.deliver.etrecord import etrecord_of
from openneutron.executorch.deliver.merge import with_modules
from openneutron.executorch.deliver.session import CompileSession
from openneutron.executorch.delivery import Built, Delivery, state_bytes
from openneutron.executorch.engines import Engines, engines_of
from openneutron.executorch.fx import is_quantize
from openneutron.executorch.methods import add_methods, check_methods
from openneutron.executorch.partition.border_facts import quantized_inputs
from openneutron.executorch.partition.passes.remove_border_quantize import Border
from openneutron.executorch.quality.goals import Measure, measure_parts, part_labels
from openneutron.executorch.quality.improve import improve
from openneutron.executorch.quality.tell import quantization_file
from openneutron.executorch.quality.trials import Trials
from openneutron.executorch.quality.wish import Wish, first_choices, given_choices
from openneutron.executorch.quantize.check.saturated import saturated_warnings
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantize.low_bit_modules import with_plain_weights
from openneutron.executorch.quantize.states import separate_module
from openneutron.executorch.quantize.train.aware import Trained, train_quantized
from openneutron.executorch.quantized_model import Quantized, in_layout, quantize, quantize_again
from openneutron.executorch.run.runtime import runner_of
from openneutron.executorch.stage_times import Progress, Stages
from openneutron.executorch.torch_lock import torch_lock
from openneutron.executorch.upstream.edge_names import forget_same_nodes
from openneutron.executorch.upstream.names import forget_fake_calls
from openneutron.executorch.upstream.versions import check_executorch
from openneutron.microcode.payload import FRAME, frame_of_pte
from openneutron.microcode.selection import is_ours, merge
from openneutron.options import DEFAULT_TARGET, Options
from openneutron.program import Program
from openneutron.report.accuracy import low_outputs
from openneutron.report.text import Chunk, text_notes


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
    structure: InputStructure | None = None,
    constant_methods: Mapping[str, Any] | None = None,
    methods: Mapping[str, Inputs] | None = None,
    **options: Any,
) -> Program:
    """Compile a PyTorch module, or an exported quantized program, to a `Program`; `options` are `Options`'.

    `structure` says how the arguments that users give hold the inputs, where these are not tensors by position.
    `constant_methods` are numbers by the name of the method that gives them, `methods` example inputs of further methods.

    With `int8_io` the program takes and gives INT8: its border quantizes nothing. An exported program that is still in
    float is quantized when there is calibration data.

    Example:
        >>> program = compile_module(model, (image,), calibration=[(image,)], target="imxrt700")
    """
    built = build(
        source, example_inputs, calibration=calibration, progress=progress, name=name,
        channels_last=channels_last, int8_io=int8_io, dump_kernel_selection_code=dump_kernel_selection_code,
        dump_intermediates=dump_intermediates, constant_methods=constant_methods, methods=methods, **options,
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
        structure=call_structure(structure, built.edge.call_spec.out_spec),
        example_inputs=_delivered_examples(source, example_inputs, built.borders, channels_last),
        etrecord_maker=built.etrecord,
    )


def _delivered_examples(
    source: torch.nn.Module | ExportedProgram, inputs: Inputs | None, borders: tuple[Border, ...], channels_last: bool
) -> tuple[Any, ...]:
    """Return example inputs as the program takes them, () where none are known or one is no tensor."""
    if inputs is None and isinstance(source, ExportedProgram) and source.example_inputs is not None:
        inputs = _examples(source)
    if inputs is None or not all(isinstance(one, torch.Tensor) for one in inputs):
        return ()
    return quantized_inputs(borders, in_layout(inputs, channels_last))


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
    constant_methods: Mapping[str, Any] | None = None,
    methods: Mapping[str, Inputs] | None = None,
    **options: Any,
) -> Built:
    """Compile as `compile_module` does, and return the quantized module and each partition too.

    `recipe` names the engines, `placement` decides about partitions that the CPU runs faster, and with `train` the model
    is trained with rounding in the loop instead of calibrated. Without `quality` nothing is searched. Several threads compile
    one after the other.
    """
    check_executorch()
    session = CompileSession()
    stages = Stages(progress)
    engines = engines_of(recipe)
    engines.check_target(target)
    chosen = Choices.of(options)
    spec = spec_options({"target": target, **options})
    wish = Wish.of({"quality": "plain", **options})
    if methods:
        check_methods(methods, engines, spec, int8_io=int8_io)
        if isinstance(source, ExportedProgram) or train is not None or channels_last:
            raise OptionError("methods are for modules with calibration data", hint="give the nn.Module")
    source, chosen, notes = with_plain_weights(source, chosen)
    if isinstance(source, ExportedProgram):
        source = with_plain_outputs(source)
    deliver = Delivery(
        spec, stages, engines, placement, recipe, int8_io, wish.metric, name or type(source).__name__,
        with_given({}, constant_methods),
    )  # fmt: skip
    if isinstance(source, ExportedProgram) and not calibration:
        return deliver.finish(deliver(source, session))
    if train is not None:
        trained, program = _train(source, example_inputs, calibration, train, engines, chosen, channels_last, stages)
        made = (
            Quantized(trained.module, program, program, trained.samples, trained.wanted, ())
            if trained.samples
            else None
        )
        built = deliver(program, session, trained.module, made, (*notes, *_mode_note(source, train)))
        low = low_outputs(built.report.outputs, "train longer, or give layers 16-bit activations (--precision)")
        report = dataclasses.replace(built.report, warnings=(*trained.warnings, *built.report.warnings, *low))
        return deliver.finish(dataclasses.replace(built, report=report))
    if isinstance(source, ExportedProgram) and any(is_quantize(node) for node in source.graph.nodes):
        raise OptionError("the program is quantized already", hint="leave calibration out")
    if isinstance(source, ExportedProgram) and example_inputs is None:
        example_inputs = _examples(source)
    if example_inputs is None or not calibration:
        raise OptionError("example_inputs and calibration are needed", hint="give both, or a quantized program")
    made = quantize(
        source, example_inputs, calibration, chosen, channels_last=channels_last, stages=stages, engines=engines,
        bodies=session.bodies if engines.neutron else None,
        choose=partial(_first_choices, wish=wish, options=options, wide=_may_be_wide(engines, spec)),
    )  # fmt: skip
    chosen = made.choices
    built = deliver(made.program, session, made.module, made, (*notes, *_mode_note(source, train)))
    if wish.is_open(built.report.outputs) and engines.neutron:
        with stages("looking for better choices"):
            built = _improve(
                built, made, source, in_layout(example_inputs, channels_last), chosen, wish, deliver, options
            )
    if methods:
        with stages("compiling further methods"):
            built = _with_methods(built, source, methods, deliver)
    return deliver.finish(_with_saturated(built, made, stages), source, made.samples)


def _with_saturated(built: Built, made: Quantized, stages: Stages) -> Built:
    """Return the program with warnings about outputs whose good figures come from clear answers alone."""
    if built.quantized is None:
        return built
    with stages("looking at saturated outputs"):
        found = saturated_warnings(
            built.quantized, separate_module(made.exported), made.samples, built.report.outputs
        )  # fmt: skip
    report = dataclasses.replace(built.report, warnings=(*built.report.warnings, *found))
    return dataclasses.replace(built, report=report)


def _may_be_wide(engines: Engines, spec: Options) -> bool:
    return engines.neutron and spec.converter == "open" and not engines.cortex_m


def _first_choices(
    exported: ExportedProgram, chosen: Choices, *, wish: Wish, options: Mapping[str, Any], wide: bool
) -> Choices:
    return first_choices(exported, chosen, wish, given_choices(options)) if wide else chosen


def _improve(
    built: Built,
    made: Quantized,
    source: torch.nn.Module | ExportedProgram,
    inputs: Inputs,
    chosen: Choices,
    wish: Wish,
    deliver: Delivery,
    options: Mapping[str, Any],
) -> Built:
    """Return the program with better choices of the quantizer, or the same one with notes about what was tried."""
    engines = deliver.engines
    stages = Stages(deliver.stages.progress)  # their seconds are part of the search's

    def build_with(choices: Choices) -> Built:
        session = CompileSession()
        again = quantize_again(
            made, source, inputs, choices, stages=stages, engines=engines, bodies=session.bodies
        )  # fmt: skip
        return dataclasses.replace(deliver, stages=stages)(again.program, session, again.module, again)

    def judge(found: Sequence[Any]) -> Measure:
        return measure_parts(found, made.wanted[: len(found)], made.labels, wish.metric, wish.decibels)

    trials = Trials(made.exported, made.calibration, made.samples, made.wanted, judge, engines.quantizer)
    with nullcontext() if isinstance(source, ExportedProgram) else evaluation(source):
        found = improve(
            built, wish, trials, chosen, build=build_with, module=made.module, fixed=given_choices(options),
            labels=part_labels(built.report.outputs, made.labels, made.wanted[0]),
            wide=_may_be_wide(engines, deliver.spec), free=not is_decoder(made.exported),
            stage=deliver.stages.progress or (lambda text: None),
        )  # fmt: skip
    report = dataclasses.replace(
        found.built.report,
        notes=(*found.notes, *found.built.report.notes),
        warnings=(*found.built.report.warnings, *found.warnings),
        quantization=quantization_file(found.choices, deliver.source) if found.choices != chosen else "",
    )
    return dataclasses.replace(found.built, report=report)


def _longest(methods: Mapping[str, Inputs]) -> tuple[str, int] | None:
    """Return the method for the most tokens with their positions, and how many."""
    sizes = {name: inputs[0].numel() for name, inputs in methods.items() if len({one.numel() for one in inputs}) == 1}
    return max(sizes.items(), key=lambda one: one[1]) if sizes else None


def _with_methods(built: Built, model: Any, methods: Mapping[str, Inputs], deliver: Delivery) -> Built:
    """Return the program with methods beside `forward`."""
    assert built.made is not None
    constants = with_given(decoder_constants(built.made.program), deliver.constants)
    added = add_methods(
        built.edge, built.made, model, methods, spec=deliver.spec, engines=deliver.engines, placement=deliver.placement,
        constants=constants,
    )  # fmt: skip
    files = {**built.report.files, "pte": len(added.pte)}
    notes = built.report.notes
    if "get_max_seq_len" in constants and (longest := _longest(methods)) is not None:
        name, tokens = longest
        text = text_notes(
            built.report, context=constants["get_max_seq_len"], cache_bytes=state_bytes(built.pte),
            chunk=Chunk(name, tokens, added.milliseconds[name]),
        )  # fmt: skip
        notes = (*text, *(note for note in notes if not note.startswith("text: ")))
    report = dataclasses.replace(built.report, files=files, notes=(*added.notes, *notes))
    record = partial(etrecord_of, built.edge, added.executorch_program)
    return dataclasses.replace(
        built, pte=added.pte, report=report, partitions=(*built.partitions, *added.partitions), etrecord=record
    )


def _train(
    model: torch.nn.Module | ExportedProgram,
    example_inputs: Inputs | None,
    calibration: Sequence[Inputs] | None,
    train: Any,
    engines: Engines,
    chosen: Choices,
    channels_last: bool,
    stages: Stages,
) -> tuple[Trained, ExportedProgram]:
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
        trained = train_quantized(model, inputs, quantizer, train, progress=stages.progress)
    with stages("exporting again"):
        return trained, export(trained.module, inputs, what="the quantized model")


def _examples(program: ExportedProgram) -> Inputs | None:
    """The inputs a program was exported with, when it kept them and they are tensors."""
    args, kwargs = program.example_inputs or ((), {})
    tensors = bool(args) and not kwargs and all(isinstance(value, torch.Tensor) for value in args)
    return tuple(args) if tensors else None


def _mode_note(source: torch.nn.Module | ExportedProgram, train: Any) -> tuple[str, ...]:
    if isinstance(source, ExportedProgram) or train is not None or not source.training:
        return ()
    return ("the model was in training mode: it was compiled as model.eval() makes it",)
