"""Compiling what a command line names, for the commands beside `compile` that start from a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openneutron.options import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openneutron.executorch.capture.sources import Loaded, Source
    from openneutron.program import Program

SIZE_HELP = "A size of an ONNX model: an open dimension (batch=1) or a whole input (x=1,3,48,192); repeatable."
CALIBRATION_HELP = (
    "Data that sets the ranges of a float model: an .npz with an array of samples for each input (by its name, or x for the "
    "only one), an .npy, a .pt that torch.save wrote, or package.module:generator that yields inputs."
)
SANDBOX_HELP = "For a stranger's file: in a process with limits, without network and without your files."
SANDBOX_LIMITS_HELP = "Other limits of the sandbox: memory=8G,seconds=600,file=1G; turns it on."
TRUST_HELP = SCHEMA["trust"].help


def found_source(source: str, sizes: Sequence[str] = (), calibration: str = "", *, trust: bool = False) -> Source:
    """The source a command line names, with its `--size`, `--calibration` and `--trust`."""
    from openneutron.executorch.capture.sources import find

    parsed: dict[str, int | tuple[int, ...]] = {}
    if sizes:
        from openneutron.onnx.sizes import parse_sizes

        parsed = parse_sizes(sizes)
    return find(source, sizes=parsed, calibration=calibration, trust=trust)


def compile_source(
    source: str,
    stage: Callable[[str], None],
    *,
    sizes: Sequence[str] = (),
    calibration: str = "",
    trust: bool = False,
    **options: Any,
) -> tuple[Program, Loaded]:
    """The source compiled as `openneutron compile` does it, and the model itself.

    `sizes`, `calibration` and `trust` are as the command line has them, `options` are those of `openneutron.compile`.

    Example:
        >>> program, loaded = compile_source("cifarnet", print, target="imxrt700")
    """
    found = found_source(source, sizes, calibration, trust=trust)
    stage("loading the model")
    loaded = found.load()
    return compile_loaded(loaded, stage, **options), loaded


def compile_loaded(loaded: Loaded, stage: Callable[[str], None], **options: Any) -> Program:
    """A loaded model compiled, with what there is to know about its loading in the report's notes."""
    import dataclasses

    import openneutron

    program = openneutron.compile(
        loaded.model, loaded.example_inputs, calibration=loaded.calibration, name=loaded.name, progress=stage, **options
    )
    report = dataclasses.replace(program.report, notes=(*program.report.notes, *loaded.notes))
    return dataclasses.replace(program, report=report)
