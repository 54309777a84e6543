"""Compile a PyTorch program for every other chip, to compare cycles and memory.

What goes to the NPU, and where partitions are cut, depends on the chip. So the quantized model is partitioned and compiled
anew, and the figures are those of the whole program: NPU, CPU and the copies between them.

Example:
    >>> [one.target for one in target_what_ifs(program, loaded, {"target": "imxrt700"})]
    ['imx95', 'mcxn94x']
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
from openneutron.executorch.torch_lock import torch_lock
from openneutron.machine import targets
from openneutron.program import Program
from openneutron.report.facts import node_counts
from openneutron.report.fits import shortfalls
from openneutron.report.model import Report, WhatIf

Progress = Callable[[str], None]
# What the quantized module has in it already.
_OF_QUANTIZATION = frozenset({*(field.name for field in fields(Choices)), "quantization", "train"})


def target_what_ifs(
    program: Program, loaded: Any, options: Mapping[str, Any], *, progress: Progress | None = None
) -> tuple[WhatIf, ...]:
    """Return one what-if for each other chip for which the model compiles."""
    source = loaded.model
    if program.quantized is not None:
        with torch_lock():
            source = export(program.quantized, loaded.example_inputs)
    if not isinstance(source, ExportedProgram):
        return ()
    given = {name: value for name, value in options.items() if name not in _OF_QUANTIZATION and name != "target"}
    found = []
    for name in targets.names():
        if name == program.report.target:
            continue
        if progress is not None:
            progress(f"trying: compile for {name}")
        try:
            report = compile_module(source, None, name=loaded.name, target=name, **given).report
        except OpenNeutronError:
            continue  # a recipe of one chip, or an operator that the other has no kernel for
        if report.whole.timed:
            found.append(_what_if(report))
    return tuple(found)


def _what_if(report: Report) -> WhatIf:
    whole, counts = report.whole, node_counts(report)
    facts = [f"{counts.delegated} of {counts.inner} nodes on the NPU"]
    facts += [f"{one.needed - one.there:,} bytes of {one.memory} short" for one in shortfalls(report)]
    return WhatIf(
        f"Run on {report.target} ({', '.join(facts)})", f"--target {report.target}", report.target, report.totals.cycles,
        whole.milliseconds, whole.memory_bytes,
        milliseconds_low=whole.milliseconds_low, milliseconds_high=whole.milliseconds_high, whole=True,
    )  # fmt: skip
