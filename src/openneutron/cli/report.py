"""`openneutron report`: one HTML file that shows where a model runs, what it costs, and what to change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openneutron.cli.inputs.loading import CALIBRATION_HELP, SIZE_HELP, TRUST_HELP
from openneutron.cli.shared.completion import efforts, model_names, target_names
from openneutron.options import DEFAULT_TARGET, SCHEMA, SDK_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from openneutron.report.model import Report


def write_report(
    source: Annotated[
        str,
        typer.Argument(
            help="What `openneutron compile` takes, or a report that its --json printed.", autocompletion=model_names
        ),
    ],
    against: Annotated[
        str, typer.Argument(help="A second one: then the page shows both side by side.", autocompletion=model_names)
    ] = "",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The .html file to write.")] = None,
    target: Annotated[
        str, typer.Option(metavar="CHIP", help="The chip (`openneutron targets`).", autocompletion=target_names)
    ] = DEFAULT_TARGET,
    optimize: Annotated[
        str, typer.Option(help="How hard to search: fast, default or max.", autocompletion=efforts)
    ] = "default",
    fit: Annotated[str, typer.Option(help="Budget for I/O + scratch + prefetch, e.g. 256K.")] = "",
    sdk: Annotated[str, typer.Option(metavar="VERSION", help=SCHEMA["sdk"].help)] = SDK_VERSIONS[-1],
    duty: Annotated[str, typer.Option(metavar="RATE", help=SCHEMA["duty"].help)] = "",
    battery: Annotated[str, typer.Option(metavar="CHARGE@VOLTS", help=SCHEMA["battery"].help)] = "",
    per_channel: Annotated[bool, typer.Option(SCHEMA["per_channel"].flags, help=SCHEMA["per_channel"].help)] = True,
    size: Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help=SIZE_HELP)] = None,
    calibration: Annotated[str, typer.Option(help=CALIBRATION_HELP)] = "",
    what_if: Annotated[bool, typer.Option(help="Compile again with changes, to show what they give.")] = True,
    accuracy: Annotated[
        bool, typer.Option(help="Run it, to show each layer's SQNR against float and LSB against the reference.")
    ] = True,
    trust: Annotated[bool, typer.Option("--trust", help=TRUST_HELP)] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON; writes a file only with -o.")
    ] = False,
) -> None:
    """Write one HTML file with graph, timeline, memory map, roofline, layers and what to change; it opens offline.

    Examples:

    openneutron report cifarnet -o cifarnet.html

    openneutron report model.tflite --target mcxn94x

    openneutron compile model.tflite --json > report.json && openneutron report report.json -o report.html

    openneutron report report.json model.tflite -o both.html
    """
    from openneutron.cli.shared.reporting import write_page, write_pair
    from openneutron.errors import OptionError
    from openneutron.files import check_target
    from openneutron.machine import targets
    from openneutron.report.model import to_json
    from openneutron.terminal import console
    from openneutron.terminal.sizes import parse_size

    if output is None and not as_json:
        output = Path(f"{Path(source).stem}_report.html")
    if output is not None:
        check_target(output, ".html")
    fit_bytes = parse_size(fit, option="--fit") if fit else None
    with console.progress("starting") as stage:
        options: dict[str, Any] = {
            "target": targets.canonical_name(target),
            "optimize": optimize,
            "fit_bytes": fit_bytes,
            "sdk": sdk,
            "duty": duty,
            "battery": battery,
        }
        if not per_channel:
            options["per_channel"] = False
        if against and as_json:
            raise OptionError("--json is for one report", hint="give each its own, or -o both.html without --json")
        model = {"sizes": size or (), "calibration": calibration, "trust": trust}
        reports = [
            _read_saved(one)
            if one.endswith(".json")
            else _make_report(one, stage, options, model, what_if=what_if and not against, accuracy=accuracy)
            for one in (source, against)
            if one
        ]
    if as_json:
        console.put(to_json(reports[0]))
    if output is not None:
        written = write_pair(reports[0], reports[1], output) if against else write_page(reports[0], output)
        if not as_json:
            console.put(f"{output}: {written:,} bytes; open it in a browser")


def _read_saved(source: str) -> Report:
    from openneutron.errors import FormatError
    from openneutron.files import read_file
    from openneutron.report.model import from_json

    try:
        return from_json(read_file(source).decode(), where=source)
    except UnicodeDecodeError:
        raise FormatError("this is no text, so no report", where=source) from None


def _make_report(
    source: str,
    stage: Callable[[str], None],
    options: dict[str, Any],
    model: dict[str, Any],
    *,
    what_if: bool,
    accuracy: bool,
) -> Report:
    """The report of a compile, with what-ifs and measured layers."""
    from openneutron.cli.inputs.loading import compile_source
    from openneutron.cli.shared.reporting import complete_report

    program, loaded = compile_source(source, stage, dump_intermediates=True, **model, **options)
    return complete_report(program, loaded, options, stage, what_if=what_if, accuracy=accuracy)
