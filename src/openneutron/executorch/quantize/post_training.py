"""Post-training quantization of an exported float program: methods before, calibration, conversion, methods behind.

Example:
    >>> chosen = Choices(correct_bias=True)
    >>> made = quantize_exported(torch.export.export(model, (image,)), [(image,)], chosen, NeutronQuantizer.of(chosen))
    >>> made.module(image)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule
from torchao.quantization.pt2e.quantizer import Quantizer

from openneutron.executorch.capture.export import one_thread
from openneutron.executorch.quantize.accuracy import SAMPLES, output_sqnr, run_all
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantize.improve.equalize import equalize
from openneutron.executorch.quantize.improve.refine import refine
from openneutron.executorch.quantize.improve.smooth import smooth
from openneutron.executorch.quantize.pt2e import calibrate, converted, prepare
from openneutron.executorch.quantize.states import apart, restore, states_of
from openneutron.executorch.stage_times import Stages

Batches = Sequence[tuple[torch.Tensor, ...]]


@dataclass(frozen=True)
class Converted:
    """The converted PT2E module, the SQNR of each of its outputs against float, and what methods have to say."""

    module: GraphModule
    sqnr: tuple[float, ...]
    notes: tuple[str, ...] = ()


def quantize_exported(
    exported: ExportedProgram,
    batches: Batches,
    chosen: Choices,
    quantizer: Quantizer,
    *,
    stages: Stages | None = None,
) -> Converted:
    """Quantize; the SQNR is against the program as it was, before any method touched it."""
    stages = stages or Stages()
    counts: dict[str, int] = {}
    with stages("preparing for quantization"), one_thread():
        # Methods may change the float function where it clips; what they are measured against is the original.
        original = run_all(apart(exported), batches) if chosen.equalize or chosen.smooth else None
        prepared = prepare(exported, quantizer, [partial(_step, counts, *one) for one in _before(chosen, batches)])
    states = states_of(prepared)
    with stages("calibrating"):
        wanted = calibrate(prepared, batches, keep=SAMPLES)
    with stages("quantizing"):
        quantized = converted(_copied(prepared) if chosen.correct_bias or chosen.adaround else prepared)
    notes = [f"{counts[name]} {what}" for name, what in _NOTES.items() if name in counts]
    if chosen.correct_bias or chosen.adaround:
        with stages("refining weights and biases"), one_thread():
            done = refine(
                quantized, prepared, batches, correct_bias=chosen.correct_bias, adaround=chosen.adaround
            )  # fmt: skip
            notes += done.notes()
    restore(quantized, states)
    with stages("measuring accuracy"), one_thread():
        sqnr = output_sqnr(original or wanted, run_all(quantized, batches))
    restore(quantized, states)
    return Converted(quantized, sqnr, tuple(notes))


_NOTES = {"equalize": "pairs of layers equalized", "smooth": "layer norms smoothed"}


def _before(chosen: Choices, batches: Batches) -> list[tuple[str, Callable[[GraphModule], int]]]:
    steps: list[tuple[str, Callable[[GraphModule], int]]] = []
    if chosen.smooth:
        steps.append(("smooth", lambda module: smooth(module, batches)))
    if chosen.equalize:
        steps.append(("equalize", equalize))
    return steps


def _step(counts: dict[str, int], name: str, step: Callable[[GraphModule], int], module: GraphModule) -> None:
    counts[name] = step(module)


def _copied(prepared: Any) -> Any:
    """A copy to convert, so that the calibrated module still runs in float."""
    import copy
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own treespec complains of being copied
        return copy.deepcopy(prepared)
