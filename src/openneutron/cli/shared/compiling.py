"""Run `openneutron compile` for a parsed command line."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from openneutron.api import Program
    from openneutron.executorch.capture.sources import Loaded, Source
    from openneutron.report.model import Report


@dataclass
class Request:
    """The parsed command line of `openneutron compile`; `options` has the options of the schema that were given."""

    source: str
    output: Path | None = None
    intermediates: Path | None = None
    report: Path | None = None
    certificate: Path | None = None
    as_json: bool = False
    force: bool = False
    everything: bool = False
    must_fit: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    size: tuple[str, ...] = ()
    calibration: str = ""
    sandbox: bool = False
    sandbox_limits: str = ""


def run_compile(request: Request) -> bool:
    """Compile, write the files and print the report; with `must_fit`, return whether the whole program fits the chip."""
    from openneutron.cli.inputs.loading import found_source
    from openneutron.files import check_replaceable, check_target
    from openneutron.machine import targets
    from openneutron.terminal import console

    if request.sandbox or request.sandbox_limits:
        from openneutron.cli.shared.sandbox import compile_in_sandbox

        return compile_in_sandbox(request)
    r, output = request, request.output
    if "target" in r.options:
        r = replace(r, options={**r.options, "target": targets.canonical_name(r.options["target"])})
    found = found_source(r.source, r.size, r.calibration, trust=bool(r.options.get("trust")))
    suffixes = {"tflite": (".tflite",), "onnx": (".pte", ".bpte", ".tflite")}.get(found.kind, (".pte", ".bpte"))
    as_litert = found.kind == "onnx" and output is not None and output.suffix == ".tflite"
    if output is None and not r.as_json:
        output = Path(f"{found.stem}_neutron.tflite" if found.kind == "tflite" else f"{found.stem}.pte")
    inputs = (r.source, r.calibration)
    for path, endings in ((output, suffixes), (r.certificate, (".json",)), (r.report, (".html",))):
        if path is None:
            continue
        check_target(path, *endings, inputs=inputs)
        if not r.force and not (path is output and r.output is None):  # the default name is ours alone
            check_replaceable(path)
    given = {name: value for name, value in r.options.items() if name != "trust"}
    if found.kind == "onnx" and given.pop("cut_head", False):
        found = replace(found, cut=True)
    options = dict(given)
    options["dump_intermediates"] = r.intermediates is not None or r.report is not None
    if r.certificate is not None:
        options["certificate"] = True
    with console.progress("starting") as stage:
        program, loaded = (_compile_as_litert if as_litert else _compile)(found, stage, options)
        report = replace(program.report, notes=(*program.report.notes, *loaded.notes))
        if r.report is not None:
            from openneutron.cli.shared.reporting import complete_report

            program_report = replace(program, report=report)
            report = complete_report(program_report, loaded, given, stage)
    report = replace(report, files=_write(program, output, found.stem, r))
    if r.report is not None:
        from openneutron.cli.shared.reporting import write_page

        size = write_page(report, r.report)
        report = replace(report, files={**report.files, r.report.name: size})
    _print(report, r.as_json, r.everything)
    from openneutron.report.fits import shortfalls

    return not r.must_fit or (not shortfalls(replace(report, files=program.report.files)))


def _print(report: Report, as_json: bool, everything: bool) -> None:
    from openneutron.terminal import console

    if as_json:
        from openneutron.report.model import to_json

        console.put(to_json(report))
    elif sys.stdout.isatty():
        from openneutron.report.render import print_report

        print_report(report, console.stdout(), everything=everything)
    else:
        from openneutron.report.plain import report_text

        console.put(report_text(report, everything=everything))


def _compile(source: Source, stage: Callable[[str], None], options: dict[str, Any]) -> tuple[Program, Loaded]:
    """The program, and what it was compiled from."""
    import openneutron

    if source.kind == "tflite":
        # numpy starts a thread per processor for products of matrices, which take time to start; this compile has none.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        loaded = source.load()
        return openneutron.compile(source.text, calibration=loaded.calibration, progress=stage, **options), loaded
    stage("loading the model")
    loaded = source.load()
    program = openneutron.compile(
        loaded.model, loaded.example_inputs, calibration=loaded.calibration, name=loaded.name, progress=stage, **options
    )
    return program, loaded


def _compile_as_litert(source: Source, stage: Callable[[str], None], options: dict[str, Any]) -> tuple[Program, Loaded]:
    """An ONNX model as a LiteRT file."""
    from openneutron.errors import OptionError
    from openneutron.terminal.quiet import quiet, without_torch_internals

    for name in ("recipe", "placement", "int8_io"):
        if name in options:
            raise OptionError(
                f"{name} is for .pte files", where=source.text, hint="leave it out; a LiteRT file takes stored numbers"
            )
    stage("loading the model")
    with quiet():
        loaded = source.load()
        from openneutron.executorch.litert_file import compile_to_litert
    with without_torch_internals():
        program = compile_to_litert(
            loaded.model, loaded.example_inputs, calibration=loaded.calibration, name=source.text,
            inputs=loaded.inputs, outputs=loaded.outputs, progress=stage, **options,
        )  # fmt: skip
    return program, loaded


def _write_selections(program: Program, beside: Path, put: Callable[[Path, str], None]) -> None:
    """One selection for each delegated subgraph when there are several, and the one for all of them."""
    if program.kernel_selection:
        put(beside.with_name(f"{beside.stem}_kernel_selection.c"), program.kernel_selection)
    if len(program.kernel_selections) > 1:
        for index, code in enumerate(program.kernel_selections):
            put(beside.with_name(f"{beside.stem}_{index}_kernel_selection.c"), code)


def _write(program: Program, output: Path | None, stem: str, request: Request) -> dict[str, int]:
    """Write everything that was asked for; returns file name → bytes."""
    from openneutron.files import make_folder, write_file

    files: dict[str, int] = {}

    def put(path: Path, data: bytes | str) -> None:
        write_file(path, data)
        files[path.name] = len(data.encode() if isinstance(data, str) else data)

    if output is not None:
        put(output, program.to_bundled_program() if output.suffix == ".bpte" else program.data)
        if program.report.quantization:
            put(output.with_name(f"{output.stem}.quantization.toml"), program.report.quantization)
    if request.options.get("dump_kernel_selection_code"):
        beside = output if output is not None else Path(f"{stem}.pte")
        _write_selections(program, beside, put)
    if request.certificate is not None:
        put(request.certificate, program.intermediates["certificate.json"])
    if request.intermediates is not None:
        folder = make_folder(request.intermediates)
        for name, content in program.intermediates.items():
            write_file(folder / name, content)
    return files
