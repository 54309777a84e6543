"""Post-training quantization of an exported float program.

The steps are: methods on the float module, calibration, conversion, methods on the converted module.

Example:
    >>> chosen = Choices(correct_bias=True)
    >>> made = quantize_exported(torch.export.export(model, (image,)), [(image,)], chosen, NeutronQuantizer.of(chosen))
    >>> made.module(image)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule
from torchao.quantization.pt2e.quantizer import Quantizer

from openneutron.executorch.capture.export import one_thread
from openneutron.executorch.quantize.accuracy import SAMPLES, run_all
from openneutron.executorch.quantize.check.finite import loses_numbers, may_lose_numbers, unsafe_inputs
from openneutron.executorch.quantize.check.rewrites import describe_node
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantize.improve.centre import centre
from openneutron.executorch.quantize.improve.equalize import equalize
from openneutron.executorch.quantize.improve.equalize_weights import equalize_weights
from openneutron.executorch.quantize.improve.refine import refine
from openneutron.executorch.quantize.improve.round_groups import round_groups
from openneutron.executorch.quantize.improve.smooth import smooth
from openneutron.executorch.quantize.pt2e import Findings, calibrate, convert, prepare
from openneutron.executorch.quantize.specs import SMALLEST_SCALE
from openneutron.executorch.quantize.states import States, restore, separate_module, states_of
from openneutron.executorch.stage_times import Stages

Batches = Sequence[tuple[torch.Tensor, ...]]


@dataclass(frozen=True)
class Converted:
    """The converted PT2E module, its original buffers, and the notes of the methods."""

    module: GraphModule
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    lossy: bool = False  # has NaN or infinity where the float network has numbers
    states: States = field(default_factory=dict)


# How many operators may be left in float, one after another, to keep numbers finite; more point to another problem.
_RETRIES = 4


def quantize_exported(
    exported: ExportedProgram,
    batches: Batches,
    chosen: Choices,
    quantizer: Quantizer,
    *,
    stages: Stages | None = None,
) -> Converted:
    """Quantize a program; the caller, which has the original model, measures the accuracy.

    Operators whose rounding makes NaN or infinity further on stay in float, and a note names them.
    """
    notes: list[str] = []
    kept = {id(one): one.exclude for one in _excluding_quantizers(quantizer)}
    try:
        for _ in range(_RETRIES):
            made = _quantize(exported, batches, chosen, quantizer, stages)
            if not made.lossy:
                return replace(made, notes=(*made.notes, *notes))
            culprit, makers = unsafe_inputs(made.module, batches[:SAMPLES])
            restore(made.module, made.states)
            names = [
                one.name
                for one in makers
                if all(one.name not in kind.exclude for kind in _excluding_quantizers(quantizer))
            ]
            if culprit is None or not names or not kept:
                break
            for kind in _excluding_quantizers(quantizer):
                kind.exclude = (*kind.exclude, *names)
            notes.append(
                f"{', '.join(map(describe_node, makers))} stays in float: rounded, {describe_node(culprit)} has no number"
            )
    finally:
        for one in _excluding_quantizers(quantizer):
            one.exclude = kept[id(one)]
    culprit = unsafe_inputs(made.module, batches[:SAMPLES])[0]
    restore(made.module, made.states)
    where = f"{describe_node(culprit)} makes" if culprit is not None else "the program has"
    warning = f"{where} NaN or infinity where the float network has numbers"
    return replace(made, notes=(*made.notes, *notes), warnings=(*made.warnings, warning))


def _excluding_quantizers(quantizer: Quantizer) -> list[Any]:
    """Return the quantizers in it that can leave operators in float."""
    return [one for one in getattr(quantizer, "quantizers", [quantizer]) if hasattr(one, "exclude")]


def _quantize(
    exported: ExportedProgram,
    batches: Batches,
    chosen: Choices,
    quantizer: Quantizer,
    stages: Stages | None,
) -> Converted:
    stages = stages or Stages()
    counts: dict[str, int] = {}
    found = Findings()
    with stages("preparing for quantization"), one_thread():
        before = [partial(_step, counts, *one) for one in _before(chosen, batches, quantizer)]
        prepared = prepare(exported, quantizer, before, samples=batches, found=found)
    states = states_of(prepared)
    with stages("calibrating"):
        calibrate(prepared, batches, found=found, state_headroom=chosen.state_headroom, fit=chosen.fit_ranges)
        restore(
            prepared, states
        )  # the conversion runs parts of the graph: a position may be behind the last one by now
    with stages("quantizing"):
        adaround = chosen.adaround and chosen.weights != "int4"  # 4-bit weights are rounded before
        quantized = convert(_copy_prepared(prepared) if chosen.correct_bias or adaround else prepared)
    notes = [f"{counts[name]} {what}" for name, what in _NOTES.items() if name in counts]
    if chosen.correct_bias or adaround:
        with stages("refining weights and biases"), one_thread():
            done = refine(
                quantized, prepared, batches, correct_bias=chosen.correct_bias, adaround=adaround
            )  # fmt: skip
            notes += done.notes()
    restore(quantized, states)
    lossy = False
    if may_lose_numbers(quantized):
        with stages("looking for NaN and infinity"), one_thread():
            lossy = loses_numbers(run_all(separate_module(exported), batches), run_all(quantized, batches))
        restore(quantized, states)
    return Converted(quantized, (*notes, *found.notes), tuple(found.warnings), lossy, states)


_NOTES = {
    "groups": "layers rounded to 4 bits for the calibration data",
    "equalize": "groups of layers equalized",
    "equalize weights": "pairs of layers equalized",
    "smooth": "layer norms smoothed",
}


def _before(chosen: Choices, batches: Batches, quantizer: Quantizer) -> list[tuple[str, Callable[[GraphModule], int]]]:
    steps: list[tuple[str, Callable[[GraphModule], int]]] = []
    if chosen.fit_ranges:
        steps.append(("centre", lambda module: centre(module, batches)))
    if chosen.smooth:
        steps.append(("smooth", lambda module: smooth(module, batches)))
    if chosen.equalize:
        if chosen.per_channel:
            steps.append(("equalize", lambda module: equalize(module, batches)))
        else:
            steps.append(("equalize weights", equalize_weights))
    if chosen.adaround and chosen.weights == "int4":
        narrow = getattr(quantizer, "has_four_bits", lambda node: False)
        steps.append(
            ("groups", lambda module: round_groups(module, batches, chosen.group_size, SMALLEST_SCALE, narrow))
        )
    return steps


def _step(counts: dict[str, int], name: str, step: Callable[[GraphModule], int], module: GraphModule) -> None:
    counts[name] = step(module)


def _copy_prepared(prepared: Any) -> Any:
    """Return a copy to convert, so that the calibrated module still runs in float."""
    import copy
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns about copying its own treespec
        return copy.deepcopy(prepared)
