"""Compile a PyTorch program with changes that concern all of it: its border, its placement, its precision, its chip.

What goes to the NPU, and where partitions are cut, depends on the chip and on the border. So the quantized model is
partitioned and compiled anew, and the figures are those of the whole program: NPU, CPU and the copies between them.

Example:
    >>> [one.option for one in program_what_ifs(program, loaded, {"target": "imxrt700"})]
    ['--int8-io', '--channels-last', '--int8-io --channels-last', '--placement fastest', '--target imx95', '--target mcxn94x']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from torch.export import ExportedProgram

from openneutron.errors import OpenNeutronError
from openneutron.executorch.capture.export import export
from openneutron.executorch.pipeline import compile_module
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantized_model import in_layout
from openneutron.executorch.torch_lock import torch_lock
from openneutron.machine import targets
from openneutron.options import PROGRAM_CHANGES, SCHEMA
from openneutron.program import Program
from openneutron.report.facts import node_counts
from openneutron.report.fits import shortfalls
from openneutron.report.model import Report, WhatIf

Progress = Callable[[str], None]
# What the quantized module has in it already.
_OF_QUANTIZATION = frozenset({*(field.name for field in fields(Choices)), "quantization", "quality", "train"})
_PRECISIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Quantize weights per output channel", {"per_channel": True}),
    ("Compute in 16 bits", {"activations": "int16"}),
)


def program_what_ifs(
    program: Program, loaded: Any, options: Mapping[str, Any], *, progress: Progress | None = None
) -> tuple[WhatIf, ...]:
    """Return one what-if for each other border, placement and chip for which the model compiles."""
    given = {name: value for name, value in options.items() if name not in _OF_QUANTIZATION and name != "target"}
    now = program.report.target
    tried = [(change, {"target": now}, changed) for change, changed in _new(PROGRAM_CHANGES, options)]
    tried += [("", {"target": name}, {}) for name in targets.chips() if name != now]
    if not _has_images(loaded.example_inputs):
        tried = [one for one in tried if not one[2].get("channels_last")]
    found = []
    for change, target, changed in tried:
        if progress is not None:
            progress(f"trying: {change or 'run on ' + target['target']}")
        values = {**given, **changed, **target}
        try:
            made = compile_again(program, loaded, values)
        except OpenNeutronError:
            continue  # a recipe of one chip, or an operator that the other has no kernel for
        if made is None:
            continue
        report = made.report
        if report.whole.timed and report.totals.neutron_graphs:
            found.append(_what_if(report, change, changed if change else target, None))
    return tuple(found)


def compile_again(
    program: Program, loaded: Any, options: Mapping[str, Any], *, progress: Progress | None = None
) -> Program | None:
    """Compile the quantized model of a program with other options; None where none is kept that has their layout."""
    source = _source(program, loaded, bool(options.get("channels_last")))
    return None if source is None else compile_module(source, None, name=loaded.name, progress=progress, **options)


def precision_what_ifs(
    loaded: Any, options: Mapping[str, Any], report: Report, *, progress: Progress | None = None
) -> tuple[WhatIf, ...]:
    """Return what other precisions give, with the SQNR that each then has: the model is quantized anew."""
    found = []
    for change, changed in _new(_PRECISIONS, options):
        if progress is not None:
            progress(f"trying: {change[0].lower()}{change[1:]}")
        try:
            values = {**options, **changed, "name": loaded.name, "quality": "plain"}
            made = compile_module(loaded.model, loaded.example_inputs, calibration=loaded.calibration, **values)
        except OpenNeutronError:
            continue  # a kernel that has no 16-bit form and no place on the CPU
        if made.report.whole.timed and made.report.totals.neutron_graphs:
            found.append(_what_if(made.report, change, changed, made.report.output_sqnr))
    return tuple(found)


def _new(changes: Any, options: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The changes that change something: none of their options has its value already."""
    now = {name: options.get(name, SCHEMA[name].default) for _, changed in changes for name in changed}
    return [(text, changed) for text, changed in changes if all(now[name] != value for name, value in changed.items())]


def _has_images(inputs: Any) -> bool:
    """Whether an input has the four dimensions that have an order of channels."""
    return any(getattr(one, "ndim", 0) == 4 for one in inputs or ())


def _source(program: Program, loaded: Any, channels_last: bool) -> ExportedProgram | None:
    """The quantized program, with inputs in the layout asked for."""
    if program.quantized is not None:
        with torch_lock():
            return export(program.quantized, in_layout(loaded.example_inputs, channels_last))
    return loaded.model if isinstance(loaded.model, ExportedProgram) and not channels_last else None


def _what_if(report: Report, change: str, changed: Mapping[str, Any], sqnr: float | None) -> WhatIf:
    whole, counts = report.whole, node_counts(report)
    facts = [f"{counts.delegated} of {counts.inner} nodes on the NPU"]
    facts += [f"{one.needed - one.there:,} bytes of {one.memory} short" for one in shortfalls(report)]
    flags = " ".join(
        SCHEMA[name].flag if value is True else f"{SCHEMA[name].flag} {value}" for name, value in changed.items()
    )
    return WhatIf(
        change or f"Run on {report.target} ({', '.join(facts)})", flags, report.target, report.totals.cycles,
        whole.milliseconds, whole.memory_bytes, output_sqnr=sqnr,
        milliseconds_low=whole.milliseconds_low, milliseconds_high=whole.milliseconds_high, whole=True,
    )  # fmt: skip
