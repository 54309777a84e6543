"""Compile a LiteRT file: quantize it if it is in float, rewrite what the NPU takes in another form, and convert it.

Example:
    >>> compile_litert("model.tflite", "", print, {"target": "imxrt700"}).report.totals.milliseconds
    1.4
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from openneutron.convert import convert
from openneutron.errors import OptionError
from openneutron.files import kind_of, read_file
from openneutron.options import Options
from openneutron.program import Program

if TYPE_CHECKING:
    from openneutron.quantize_litert.quantize import FloatQuantizer, QuantizedModel
    from openneutron.report.model import Report
    from openneutron.result import Result
    from openneutron.run.samples import Runner

# Options about quantization that float LiteRT files take beside calibration data.
QUANTIZING = ("activations", "quality", "quality_cycles")
# What to try where a float LiteRT file loses accuracy; LiteRT's quantizer has nothing else.
_MORE = "give more calibration samples that look like real ones"
_HELPS = {"int8": f"{_MORE}, or try --activations int16", "int16": _MORE}
_JOINED = (
    "weights with a scale for each block of inputs became INT8 weights whose blocks have a factor, stored in 4 bits: results "
    "are those of the rewritten model, quantized.tflite among the intermediates"
)

Progress = Callable[[str], None]


class Choices(NamedTuple):
    """How a float model is quantized."""

    activations: str = Options.activations
    quality: str | float = Options.quality
    quality_cycles: float = Options.quality_cycles

    @property
    def goal(self) -> float:
        """The decibels that every output shall have."""
        from openneutron.report.accuracy import GOAL

        return GOAL if isinstance(self.quality, str) else self.quality


def compile_litert(
    source: Any,
    name: str,
    stage: Progress,
    options: dict[str, Any],
    calibration: Any = None,
    *,
    cut: bool = False,
    choices: Choices | None = None,
) -> Program:
    """Return the program of a LiteRT file's path or bytes; with `calibration` a float model is quantized first.

    `options` are those of `Options`. With `cut` a detector ends where its boxes are selected.
    """
    data, where = _read(source, name, stage)
    settings = Options(source=where, **options)
    notes: tuple[str, ...] = ()
    if cut:
        data, notes = _without_head(data, where)
    if calibration is not None:
        return _compile_float(data, calibration, choices or Choices(), settings, notes, stage)
    stage("compiling")
    result = _told_of_float(convert(data, settings), data, where)
    joined = _with_joined_blocks(data, where) if _leaves_layers(result.report) else None
    if joined is None:
        return _program(result, notes)
    return _program(convert(joined, settings), (*notes, _JOINED), joined)


def _told_of_float(result: Result, data: bytes, where: str) -> Result:
    """Return the result with a warning where nothing runs on the NPU because the model is in float."""
    if result.report.totals.operators_converted:
        return result
    from openneutron.litert.read import read_model
    from openneutron.quantize_litert.quantize import is_float

    if not is_float(read_model(data, source=where)):
        return result
    told = "nothing runs on the NPU, because the model is in float: give calibration data, with which it is quantized"
    return replace(result, report=replace(result.report, warnings=(*result.report.warnings, told)))


def _read(source: Any, name: str, stage: Progress) -> tuple[bytes, str]:
    """Return a model's bytes and what messages call it."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        data, where = bytes(source), name or "<bytes>"
    else:
        stage("reading the model")
        data, where = read_file(source), name or Path(source).name
    if kind_of(data) == "pte":
        raise OptionError(
            "this is a compiled ExecuTorch program already", where=where, hint="compile its source instead"
        )
    return data, where


def _compile_float(
    data: bytes, calibration: Any, choices: Choices, settings: Options, notes: tuple[str, ...], stage: Progress
) -> Program:
    """Quantize, convert, and give operators 16 bits where the accuracy is below the goal."""
    from openneutron.quantize_litert.quantize import FloatQuantizer
    from openneutron.report.accuracy import low_outputs, missed_outputs, warnings_of_outputs, worst_sqnr

    stage("quantizing")
    samples = calibration if hasattr(calibration, "shape") else _as_list(calibration)
    data = _with_sizes_of(data, samples, settings.source)
    searches = choices.quality != "plain" and choices.activations == "int8" and settings.converter == "open"
    with FloatQuantizer(data, samples, source=settings.source) as quantizer:
        made = quantizer.quantize(choices.activations)
        stage("compiling")
        result = convert(made.model, settings)
        if searches:
            made, result, found = _improve(quantizer, made, result, choices, settings, stage)
            notes = (*notes, *found)
    low = low_outputs(made.outputs, _HELPS[choices.activations])
    if searches:
        more = f"raise --quality-cycles above {choices.quality_cycles:g}, or {_MORE}"
        low += missed_outputs(made.outputs, choices.goal, more)
    report = replace(
        result.report,
        notes=(*result.report.notes, f"quantized here by {made.made_by}"),
        output_sqnr=worst_sqnr(made.outputs),
        outputs=made.outputs,
        warnings=(*result.report.warnings, *warnings_of_outputs(made.outputs), *low),
    )
    return _program(replace(result, report=report), notes, made.model)


def _with_sizes_of(data: bytes, samples: Any, source: str) -> bytes:
    """Return the model with its open inputs as large as the first sample's."""
    from openneutron.litert.passes.open_inputs import size_open_inputs
    from openneutron.litert.read import read_model
    from openneutron.litert.write import write_model

    model = read_model(data, source=source)
    names = [model.main.tensors[at].name for at in model.main.inputs]
    first: Any = samples if hasattr(samples, "shape") else next(iter(samples or [()]))
    if isinstance(first, Mapping):
        first = [first.get(name, ()) for name in names]
    parts = first if isinstance(first, (tuple, list)) else [first]
    return write_model(model) if size_open_inputs(model.main, [tuple(np.shape(one)) for one in parts]) else data


def _improve(
    quantizer: FloatQuantizer,
    made: QuantizedModel,
    result: Result,
    choices: Choices,
    settings: Options,
    stage: Progress,
) -> tuple[QuantizedModel, Result, tuple[str, ...]]:
    """Return the model, its conversion and notes; those given where the goal is reached, or nothing better is found."""
    from openneutron.quantize_litert.improve import improve_quantized
    from openneutron.report.accuracy import MANY_SAMPLES, MARGIN, lowest_sqnr

    aim = choices.goal + (MARGIN if quantizer.count < MANY_SAMPLES else 0.0)
    if lowest_sqnr(made.outputs) >= aim:
        return made, result, ()
    stage("looking for better choices")
    began = time.perf_counter()
    better = improve_quantized(
        quantizer, made, result, goal=aim, most_cycles=choices.quality_cycles,
        convert=lambda model: convert(model, settings),
    )  # fmt: skip
    seconds = {**result.report.seconds, "looking for better choices": time.perf_counter() - began}
    found = replace(better.result, report=replace(better.result.report, seconds=seconds))
    return better.made, found, better.notes


def _program(result: Result, notes: tuple[str, ...], quantized: bytes | None = None) -> Program:
    """Return the program of a conversion, with notes in front of its own; `quantized` is the model behind all rewrites."""
    intermediates: dict[str, bytes | str] = dict(result.intermediates)
    if quantized is not None:
        intermediates["quantized.tflite"] = quantized
    return Program(
        result.model,
        "tflite",
        replace(result.report, notes=(*notes, *result.report.notes)),
        result.kernel_selection_code,
        intermediates,
        kernel_selections=result.kernel_selections,
        loader=_load_runner,
    )


def _without_head(data: bytes, where: str) -> tuple[bytes, tuple[str, ...]]:
    """Return a LiteRT model without what selects boxes, and a note."""
    from openneutron.litert.passes.cut_head import cut_head
    from openneutron.litert.read import read_model
    from openneutron.litert.write import write_model
    from openneutron.onnx.cut_head import sentence

    model = read_model(data, source=where)
    names = cut_head(model.main)
    if not names:
        raise OptionError(
            "there is no head to cut: no top-k or non-maximum suppression", where=where, hint="leave it out"
        )
    return write_model(model), (sentence(names),)


def _with_joined_blocks(data: bytes, where: str) -> bytes | None:
    """Return the model with weights in blocks rewritten; None where it has none."""
    from openneutron.litert.passes.drop_tensors import drop_tensors
    from openneutron.litert.passes.join_blocks import join_blocks
    from openneutron.litert.read import read_model
    from openneutron.litert.write import write_model

    model = read_model(data, source=where)
    if not join_blocks(model.main):
        return None
    drop_tensors(model)
    return write_model(model)


def _leaves_layers(report: Report) -> bool:
    """Return whether fully connected layers stay on the CPU, as those with weights in blocks do."""
    return any(one.code == "FULLY_CONNECTED" and not one.converted for one in report.operators)


def _as_list(calibration: Any) -> Any:
    """Return calibration data that can be read more than once; anything but an iterable is refused later."""
    is_many = isinstance(calibration, Iterable) and not isinstance(calibration, (Mapping, str, bytes))
    return list(calibration) if is_many else calibration


def _load_runner(data: bytes, where: str) -> Runner:
    from openneutron.run.runner import runner_of  # only a program that is run needs the simulator

    return runner_of(data, where)
