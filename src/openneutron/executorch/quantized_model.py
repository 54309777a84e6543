"""A model quantized after training: the PT2E module, its exported program, and what its results are compared with.

Example:
    >>> made = quantize(model, (image,), [(image,)])
    >>> made.sqnr, made.program
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from openneutron.executorch.capture.checks import check_model, check_samples
from openneutron.executorch.capture.decoder_facts import decoder_constants
from openneutron.executorch.capture.export import Inputs, check_shapes, evaluation, export, one_thread
from openneutron.executorch.engines import Engines, engines_of
from openneutron.executorch.lower.layer_calls import LayerBodies
from openneutron.executorch.partition.passes.keep_layers_whole import contract_layers
from openneutron.executorch.quantize.accuracy import SAMPLES, SEQUENCE, compare_outputs, run_all
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantize.measure.original import run_original
from openneutron.executorch.quantize.measure.piece_labels import piece_labels
from openneutron.executorch.quantize.post_training import quantize_exported
from openneutron.executorch.quantize.states import restore, states_of
from openneutron.executorch.stage_times import Stages
from openneutron.options import unmatched_warnings
from openneutron.report.model import OutputAccuracy


@dataclass(frozen=True)
class Quantized:
    """The converted PT2E module, its exported program, and the results `wanted` of the given model on `samples`.

    `exported` is the float program that was quantized, `calibration` its data. `labels` number the pieces that outputs are
    joined from. `notes` say what methods did, `warnings` say where the given model's own result is no number.
    """

    module: GraphModule
    program: ExportedProgram
    exported: ExportedProgram
    calibration: Sequence[Inputs]
    wanted: Sequence[Any]
    labels: Sequence[torch.Tensor | None]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    choices: Choices = field(default_factory=Choices)

    @property
    def samples(self) -> Sequence[Inputs]:
        """The samples on which accuracy is measured."""
        return self.calibration[: len(self.wanted)]

    @property
    def sqnr(self) -> tuple[float, ...]:
        """The module's SQNR in decibels for each output that has one."""
        return tuple(one.sqnr for one in self.compare() if one.sqnr is not None)

    def compare(self, metric: str = "auto") -> tuple[OutputAccuracy, ...]:
        """Measure the module's accuracy; its state stays as it was."""
        states = states_of(self.module)
        with one_thread():
            found = run_all(self.module, self.samples, len(self.samples))
        restore(self.module, states)
        return compare_outputs(self.wanted, found, self.labels, metric=metric)


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
    choose: Callable[[ExportedProgram, Choices], Choices] | None = None,
) -> Quantized:
    """Quantize a model after training, and run it in float on a few calibration samples to compare with later.

    `choose` may change the choices once the program is known.

    With `bodies` recurrent layers are one call each in the program, which only our partitioner knows; their bodies go there.
    """
    check_model(model)
    check_samples(example_inputs, calibration)
    if isinstance(model, ExportedProgram):
        check_shapes(model)
    stages, chosen, engines = stages or Stages(), chosen or Choices(), engines or engines_of("neutron")
    inputs = in_layout(example_inputs, channels_last)
    batches = [in_layout(batch, channels_last) for batch in calibration]
    with nullcontext() if isinstance(model, ExportedProgram) else evaluation(model):
        with stages("exporting"):
            exported = model if isinstance(model, ExportedProgram) else export(model, inputs)
        chosen = chosen if choose is None else choose(exported, chosen)
        module, program, notes, warnings = _convert(exported, inputs, batches, chosen, engines, bodies, stages)
        with stages("running the model in float"), one_thread():
            wanted = run_original(model, batches[: SEQUENCE if _is_sequence(exported, module) else SAMPLES])
    return Quantized(module, program, exported, batches, wanted, piece_labels(exported), notes, warnings, chosen)


def _is_sequence(exported: ExportedProgram, module: GraphModule) -> bool:
    """Whether samples are steps of one sequence: the model keeps state, so its first results say little of later ones."""
    return bool(decoder_constants(exported) or states_of(module))


def quantize_again(
    made: Quantized,
    model: torch.nn.Module | ExportedProgram,
    example_inputs: Inputs,
    chosen: Choices,
    *,
    stages: Stages,
    engines: Engines,
    bodies: LayerBodies | None = None,
) -> Quantized:
    """Quantize the captured program with other choices; `example_inputs` are in the layout of its samples."""
    with nullcontext() if isinstance(model, ExportedProgram) else evaluation(model):
        module, program, notes, warnings = _convert(
            made.exported, example_inputs, made.calibration, chosen, engines, bodies, stages
        )
    return replace(made, module=module, program=program, notes=notes, warnings=warnings, choices=chosen)


def _convert(
    exported: ExportedProgram, inputs: Inputs, batches: Sequence[Inputs], chosen: Choices, engines: Engines,
    bodies: LayerBodies | None, stages: Stages,
) -> tuple[GraphModule, ExportedProgram, tuple[str, ...], tuple[str, ...]]:  # fmt: skip
    """Return the converted module, its exported program, notes and warnings."""
    quantizer = engines.quantizer(chosen)
    made = quantize_exported(exported, batches, chosen, quantizer, stages=stages)
    with stages("exporting again"):
        captured = made.module if bodies is None else contract_layers(made.module, bodies)
        program = export(captured, inputs, what="the quantized model")
    parts = getattr(quantizer, "quantizers", [quantizer])
    unmatched = [item for one in parts for item in getattr(one, "unmatched", {}).items()]
    without_effect = [
        line
        for option, patterns in unmatched
        for line in unmatched_warnings(
            option, [one for one in patterns if option != "[[layer]]" or one in chosen.asked]
        )
    ]
    return made.module, program, made.notes, (*made.warnings, *without_effect)


def in_layout(inputs: Inputs, channels_last: bool) -> Inputs:
    """Inputs as the program stores them: dense, and images channels-last on request."""
    if channels_last:
        return tuple(x.to(memory_format=torch.channels_last) if x.dim() == 4 else x.contiguous() for x in inputs)
    return tuple(x if _is_dense(x) else x.contiguous() for x in inputs)


def _is_dense(x: torch.Tensor) -> bool:
    return x.is_contiguous() or (x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last))
