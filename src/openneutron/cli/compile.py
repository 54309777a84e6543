"""`openneutron compile`: a PyTorch model or a LiteRT file in, a `.pte` or a converted LiteRT file out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from openneutron._compile import Program
    from openneutron.sources import Source

_SOURCES = (
    "A model of the zoo (`openneutron zoo`), package.module:factory, a .pt2 exported program or a .tflite file. "
    "A factory gives (module, example_inputs) or (module, example_inputs, calibration)."
)


def compile_model(
    source: Annotated[str, typer.Argument(help=_SOURCES)],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write: .pte for PyTorch models, .tflite for LiteRT ones."),
    ] = None,
    target: Annotated[str, typer.Option(help="The chip (`openneutron targets`).")] = "imxrt700",
    converter: Annotated[str, typer.Option(help="open: ours. nxp: NXP's SDK, if installed.")] = "open",
    optimize: Annotated[str, typer.Option(help="How hard to search: fast, default or max.")] = "default",
    fit: Annotated[str, typer.Option(help="Budget for I/O + scratch + prefetch, e.g. 256K.")] = "",
    fetch_constants_to_sram: Annotated[
        bool, typer.Option("--fetch-constants-to-sram", help="Prefetch weights from flash.")
    ] = False,
    use_profiling: Annotated[bool, typer.Option("--use-profiling", help="Record each kernel call.")] = False,
    dump_kernel_selection: Annotated[
        bool, typer.Option("--dump-kernel-selection", help="Write *_kernel_selection.c beside the output.")
    ] = False,
    intermediates: Annotated[
        Path | None, typer.Option(help="Folder for LiteRT models, L1/L2 dumps and disassembly.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Write the proof of the schedule here, for `openneutron certify`.")
    ] = None,
    not_delegate: Annotated[
        list[str] | None, typer.Option(help="Keep this operator on the CPU (name or glob; repeatable).")
    ] = None,
    pass_off: Annotated[list[str] | None, typer.Option(help="Leave out this compiler pass (repeatable).")] = None,
    channels_last: Annotated[
        bool, typer.Option("--channels-last", help="Channels-last inputs for PyTorch models.")
    ] = False,
    int8_io: Annotated[
        bool,
        typer.Option(
            "--int8-io", help="INT8 inputs and outputs for PyTorch models: nothing is quantized at the border."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON and nothing else; writes a file only with -o.")
    ] = False,
) -> None:
    """Compile a model and print where every node runs, the estimated cycles and the memory.

    Examples:

    openneutron compile cifarnet -o cifarnet.pte

    openneutron compile model.tflite -o out.tflite --target mcxn94x

    openneutron compile package.module:factory --int8-io
    """
    import dataclasses

    from openneutron.cli import console
    from openneutron.cli.sizes import parse_size
    from openneutron.files import check_target
    from openneutron.report.model import to_json
    from openneutron.sources import find

    found = find(source)
    suffix = ".tflite" if found.kind == "tflite" else ".pte"
    if output is None and not as_json:
        output = Path(f"{found.stem}_neutron.tflite" if found.kind == "tflite" else f"{found.stem}.pte")
    if output is not None:
        check_target(output, suffix)
    if certificate is not None:
        check_target(certificate, ".json")
    fit_bytes = parse_size(fit, option="--fit") if fit else None
    with console.progress("starting") as stage:
        program, notes = _compile(
            found,
            stage,
            target=target,
            converter=converter,
            optimize=optimize,
            fit_bytes=fit_bytes,
            fetch_constants_to_sram=fetch_constants_to_sram,
            use_profiling=use_profiling,
            dump_kernel_selection_code=dump_kernel_selection,
            dump_intermediates=intermediates is not None,
            certificate=certificate is not None,
            operators_not_to_delegate=tuple(not_delegate or ()),
            passes_off=tuple(pass_off or ()),
            channels_last=channels_last,
            int8_io=int8_io,
        )
    files = _write(program, output, found.stem, dump_kernel_selection, intermediates, certificate)
    report = dataclasses.replace(program.report, files=files, notes=(*program.report.notes, *notes))
    if as_json:
        console.put(to_json(report))
        return
    from openneutron.report.render import print_report

    print_report(report, console.stdout())


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


def _write(
    program: Program,
    output: Path | None,
    stem: str,
    selection: bool,
    intermediates: Path | None,
    certificate: Path | None,
) -> dict[str, int]:
    """Write everything that was asked for; returns file name → bytes."""
    from openneutron.files import make_folder, write_file

    files: dict[str, int] = {}

    def put(path: Path, data: bytes | str) -> None:
        write_file(path, data)
        files[path.name] = len(data.encode() if isinstance(data, str) else data)

    if output is not None:
        put(output, program.data)
    if selection:
        beside = output if output is not None else Path(f"{stem}.pte")
        _write_selections(program, beside, put)
    if certificate is not None:
        put(certificate, program.intermediates["certificate.json"])
    if intermediates is not None:
        folder = make_folder(intermediates)
        for name, content in program.intermediates.items():
            write_file(folder / name, content)
    return files
