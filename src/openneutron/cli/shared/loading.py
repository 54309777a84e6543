"""Compiling what a command line names, for the commands beside `compile` that start from a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from openneutron.executorch.capture.sources import Loaded
    from openneutron.program import Program


def compile_source(source: str, stage: Callable[[str], None], **options: Any) -> tuple[Program, Loaded]:
    """The source compiled as `openneutron compile` does it, and the model itself.

    `options` are those of `openneutron.compile`.

    Example:
        >>> program, loaded = compile_source("cifarnet", print, target="imxrt700")
    """
    from openneutron.executorch.capture.sources import find

    found = find(source)
    stage("loading the model")
    loaded = found.load()
    return compile_loaded(loaded, stage, **options), loaded


def compile_loaded(loaded: Loaded, stage: Callable[[str], None], **options: Any) -> Program:
    """A loaded model compiled, with what there is to know about its loading in the report's notes."""
    import dataclasses

    import openneutron

    inputs: dict[str, Any] = {}
    if not isinstance(loaded.model, str):
        inputs = {"example_inputs": loaded.example_inputs, "calibration": loaded.calibration}
    program = openneutron.compile(loaded.model, name=loaded.name, progress=stage, **inputs, **options)
    report = dataclasses.replace(program.report, notes=(*program.report.notes, *loaded.notes))
    return dataclasses.replace(program, report=report)
