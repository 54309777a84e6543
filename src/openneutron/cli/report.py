"""`openneutron report`: one HTML file that shows where a model runs, what it costs, and what to change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from openneutron.report.model import Report


def write_report(
    source: Annotated[
        str, typer.Argument(help="What `openneutron compile` takes, or a report that its --json printed.")
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The .html file to write.")] = None,
    target: Annotated[str, typer.Option(help="The chip (`openneutron targets`).")] = "imxrt700",
    optimize: Annotated[str, typer.Option(help="How hard to search: fast, default or max.")] = "default",
    fit: Annotated[str, typer.Option(help="Budget for I/O + scratch + prefetch, e.g. 256K.")] = "",
    what_if: Annotated[bool, typer.Option(help="Compile again with changes, to show what they give.")] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON; writes a file only with -o.")
    ] = False,
) -> None:
    """Write one HTML file with graph, timeline, memory map, roofline, layers and what to change; it opens offline.

    Examples:

    openneutron report cifarnet -o cifarnet.html

    openneutron report model.tflite --target mcxn94x

    openneutron compile model.tflite --json > report.json && openneutron report report.json -o report.html
    """
    from openneutron.cli import console
    from openneutron.cli.sizes import parse_size
    from openneutron.files import check_target, write_file
    from openneutron.report.model import to_json

    if output is None and not as_json:
        output = Path(f"{Path(source).stem}_report.html")
    if output is not None:
        check_target(output, ".html")
    fit_bytes = parse_size(fit, option="--fit") if fit else None
    with console.progress("starting") as stage:
        options = {"target": target, "optimize": optimize, "fit_bytes": fit_bytes}
        report = _saved(source) if source.endswith(".json") else _made(source, stage, what_if, options)
    if output is not None:
        from openneutron.report.html import page

        write_file(output, page(report))
    if as_json:
        console.put(to_json(report))
    elif output is not None:
        size = output.stat().st_size if output.is_file() else 0
        console.stdout().print(f"{output}: {size:,} bytes; open it in a browser", markup=False)


def _saved(source: str) -> Report:
    from openneutron.errors import FormatError
    from openneutron.files import read_file
    from openneutron.report.model import from_json

    try:
        return from_json(read_file(source).decode(), where=source)
    except UnicodeDecodeError:
        raise FormatError("this is no text, so no report", where=source) from None


def _made(source: str, stage: Callable[[str], None], what_if: bool, options: dict[str, Any]) -> Report:
    """The report of a compile, with the what-ifs of the LiteRT models behind it."""
    import dataclasses

    from openneutron.cli.sources import compile_source
    from openneutron.convert import Options
    from openneutron.files import read_file
    from openneutron.whatif import what_ifs

    program, _ = compile_source(source, stage, dump_intermediates=True, **options)
    if not what_if:
        return program.report
    if program.kind == "tflite":
        models = [read_file(source)]
    else:
        graphs = range(program.report.totals.neutron_graphs)
        models = [bytes(program.intermediates[f"partition_{at}.tflite"]) for at in graphs]  # type: ignore[arg-type]
    found = what_ifs(models, Options(source=source, **options), program.report, progress=stage)
    return dataclasses.replace(program.report, what_ifs=found)
