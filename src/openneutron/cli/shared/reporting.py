"""A compile's report made complete: how exact each layer is, and what changes would give."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from openneutron.executorch.capture.sources import Loaded
    from openneutron.program import Program
    from openneutron.report.model import Report


def complete_report(
    program: Program,
    loaded: Loaded,
    options: Mapping[str, Any],
    stage: Callable[[str], None],
    *,
    what_if: bool = True,
    accuracy: bool = True,
) -> Report:
    """The program's report with measured layers and what-ifs; `options` are those of `Options` it was compiled with.

    The program must have been compiled with `dump_intermediates=True`, which keeps the LiteRT models behind it.

    Example:
        >>> program, loaded = compile_source("cifarnet", print, dump_intermediates=True)
        >>> complete_report(program, loaded, {}, print).what_ifs
    """
    from openneutron.analyze.exactness import with_exactness
    from openneutron.analyze.what_if import what_ifs
    from openneutron.options import Options

    report = program.report
    if not report.totals.neutron_graphs:
        return report
    compiled_with = Options(source=loaded.name, **options)
    models = litert_models(program, loaded)
    if accuracy and compiled_with.converter == "open":
        report = with_exactness(report, models, compiled_with, stage)
    from_file = program.kind == "tflite"
    found = what_ifs(models, compiled_with, report, elsewhere=from_file, progress=stage) if what_if else ()
    if what_if and not from_file and compiled_with.converter == "open":
        from openneutron.executorch.analyze.program_what_ifs import program_what_ifs

        found += program_what_ifs(program, loaded, options, progress=stage)
    if accuracy and program.quantized is not None and loaded.calibration:
        from openneutron.executorch.analyze.layer_sqnr import with_sqnr
        from openneutron.executorch.analyze.program_what_ifs import precision_what_ifs

        report = with_sqnr(report, loaded.model, program.quantized, loaded.calibration, progress=stage)
        if what_if:
            found += precision_what_ifs(loaded, options, report, progress=stage)
    return dataclasses.replace(report, what_ifs=found)


def litert_models(program: Program, loaded: Loaded) -> list[bytes]:
    """The LiteRT models behind a program: the file itself, or one per delegate."""
    from openneutron.files import read_file

    if program.kind == "tflite":
        made = ("model.tflite", "quantized.tflite")  # of an ONNX model, of a float file
        own = next((program.intermediates[name] for name in made if name in program.intermediates), None)
        return [read_file(loaded.model) if own is None else bytes(own)]  # type: ignore[arg-type]
    graphs = range(program.report.totals.neutron_graphs)
    return [bytes(program.intermediates[f"partition_{at}.tflite"]) for at in graphs]  # type: ignore[arg-type]


def write_pair(first: Report, second: Report, output: Path) -> int:
    """Write the page of two reports; returns its bytes."""
    from openneutron.files import write_file
    from openneutron.report.html import pair_page

    text = pair_page(first, second)
    write_file(output, text)
    return len(text.encode())


def write_page(report: Report, output: Path) -> int:
    """Write the HTML page; returns its bytes."""
    from openneutron.files import write_file
    from openneutron.report.html import page

    text = page(report)
    write_file(output, text)
    return len(text.encode())
