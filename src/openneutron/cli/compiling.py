"""What `openneutron compile` does, once its command line is understood; imports no typer, and rich only on a terminal."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from openneutron._compile import Program
    from openneutron.report.model import Report
    from openneutron.sources import Source


@dataclass
class Request:
    """The command line of `openneutron compile`: a field for each option, with the option's default."""

    source: str
    output: Path | None = None
    target: str = "imxrt700"
    converter: str = "open"
    optimize: str = "default"
    fit: str = ""
    fetch_constants_to_sram: bool = False
    use_profiling: bool = False
    dump_kernel_selection: bool = False
    intermediates: Path | None = None
    certificate: Path | None = None
    not_delegate: list[str] | None = None
    pass_off: list[str] | None = None
    channels_last: bool = False
    int8_io: bool = False
    as_json: bool = False


def run_compile(request: Request) -> None:
    """Compile, write the files and print the report."""
    from openneutron.cli import console
    from openneutron.cli.sizes import parse_size
    from openneutron.files import check_target
    from openneutron.sources import find

    r, output = request, request.output
    found = find(r.source)
    suffix = ".tflite" if found.kind == "tflite" else ".pte"
    if output is None and not r.as_json:
        output = Path(f"{found.stem}_neutron.tflite" if found.kind == "tflite" else f"{found.stem}.pte")
    if output is not None:
        check_target(output, suffix)
    if r.certificate is not None:
        check_target(r.certificate, ".json")
    fit_bytes = parse_size(r.fit, option="--fit") if r.fit else None
    with console.progress("starting") as stage:
        program, notes = _compile(
            found,
            stage,
            target=r.target,
            converter=r.converter,
            optimize=r.optimize,
            fit_bytes=fit_bytes,
            fetch_constants_to_sram=r.fetch_constants_to_sram,
            use_profiling=r.use_profiling,
            dump_kernel_selection_code=r.dump_kernel_selection,
            dump_intermediates=r.intermediates is not None,
            certificate=r.certificate is not None,
            operators_not_to_delegate=tuple(r.not_delegate or ()),
            passes_off=tuple(r.pass_off or ()),
            channels_last=r.channels_last,
            int8_io=r.int8_io,
        )
    files = _write(program, output, found.stem, r)
    _print(replace(program.report, files=files, notes=(*program.report.notes, *notes)), r.as_json)


def _print(report: Report, as_json: bool) -> None:
    from openneutron.cli import console

    if as_json:
        from openneutron.report.model import to_json

        console.put(to_json(report))
    elif sys.stdout.isatty():
        from openneutron.report.render import print_report

        print_report(report, console.stdout())
    else:
        from openneutron.report.plain import report_text

        console.put(report_text(report))


def _compile(
    source: Source, stage: Callable[[str], None], *, channels_last: bool, int8_io: bool, **options: Any
) -> tuple[Program, tuple[str, ...]]:
    """The program, and what a user should know about how its source was loaded."""
    import openneutron

    if source.kind == "tflite":
        from openneutron.errors import OptionError

        if channels_last or int8_io:
            given = "--channels-last" if channels_last else "--int8-io"
            raise OptionError(f"{given} is for PyTorch models; LiteRT models always are")
        return openneutron.compile(source.text, progress=stage, **options), ()
    stage("loading the model")
    loaded = source.load()
    program = openneutron.compile(
        loaded.model,
        loaded.example_inputs,
        calibration=loaded.calibration,
        channels_last=channels_last,
        int8_io=int8_io,
        name=loaded.name,
        progress=stage,
        **options,
    )
    return program, loaded.notes


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
        put(output, program.data)
    if request.dump_kernel_selection:
        beside = output if output is not None else Path(f"{stem}.pte")
        _write_selections(program, beside, put)
    if request.certificate is not None:
        put(request.certificate, program.intermediates["certificate.json"])
    if request.intermediates is not None:
        folder = make_folder(request.intermediates)
        for name, content in program.intermediates.items():
            write_file(folder / name, content)
    return files
