"""`openneutron sweep`: a grid of models, chips and options, compiled by many processes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openneutron.cli.evaluate import DATA_HELP
from openneutron.cli.inputs.loading import CALIBRATION_HELP, SIZE_HELP, TRUST_HELP
from openneutron.cli.shared.completion import model_names
from openneutron.options import PUBLIC, Option

if TYPE_CHECKING:
    from openneutron.sweeps.results import Sweep

# Every option that changes what is compiled, each with values separated by commas.
_NO_AXIS = ("dump_kernel_selection_code", "trust", "quality", "quality_cycles", "metric", "state_headroom")
_AXES = tuple(one for one in PUBLIC if one.flag and one.name not in _NO_AXIS)
_MANY = {"switch": "no,yes", "names": "none,a+b", "bytes": "none,64K"}
_TABLE_ROWS = 40  # one screen; the files have all
_ALWAYS = {
    "stock_ms": "stock ms", "stock_arena_bytes": "stock arena", "stock_flash_bytes": "stock flash", "open_ms": "open ms",
    "open_sram_bytes": "open SRAM", "sqnr_db": "SQNR dB",
}  # fmt: skip
_FIGURES = {**_ALWAYS, "accuracy": "accuracy", "float_accuracy": "in float"}


def sweep_models(
    models: Annotated[
        list[str], typer.Argument(help="What `openneutron compile` takes, or a .toml file.", autocompletion=model_names)
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of results; a sweep goes on from it.")],
    argument: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES", help="Values for an argument of factories: width=0.25,0.5,1.0; repeatable."
        ),
    ] = None,
    workers: Annotated[int, typer.Option(metavar="N", help="Processes; 0: one for each core.", min=0)] = 0,
    scheduler: Annotated[str, typer.Option(help="A Dask scheduler, e.g. tcp://host:8786, instead of processes.")] = "",
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Seconds a variant may take; 0: any.", min=0)
    ] = 600.0,
    no_reports: Annotated[bool, typer.Option("--no-reports", help="No HTML report for each variant.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Compile also what the folder has.")] = False,
    data: Annotated[str, typer.Option(help=f"{DATA_HELP} zoo: what each network of the zoo brings.")] = "",
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="Use only this many samples, from the first on; 0 for all.")
    ] = 0,
    mean: Annotated[str, typer.Option(help="Subtracted from images of 0 to 1, per channel: 0.485,0.456,0.406.")] = "",
    std: Annotated[str, typer.Option(help="Images are divided by this after --mean: 0.229,0.224,0.225.")] = "",
    parquet: Annotated[bool, typer.Option("--parquet", help="Also write results.parquet.")] = False,
    size: Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help=SIZE_HELP)] = None,
    calibration: Annotated[str, typer.Option(help=CALIBRATION_HELP)] = "",
    trust: Annotated[bool, typer.Option("--trust", help=TRUST_HELP)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
    **grid: Any,
) -> None:
    """Compile every model for every chip with every option, and say what each variant costs.

    Writes results.csv, results.jsonl and index.html, a page with every variant on axes to choose. With --data, each
    variant's accuracy is among the figures.

    Exit code 0: every variant has figures; 1: some failed or took too long, and their rows say why, or a file could not
    be written.

    Examples:

    openneutron sweep model.tflite --target imxrt700,mcxn94x --fit none,64K --workers 1 -o folder

    openneutron sweep cifarnet ds_cnn --target imxrt700,mcxn94x --fit none,64K --workers 2 -o folder

    openneutron sweep cifarnet --per-channel no,yes --data zoo --limit 200 --workers 1 -o folder
    """
    import json

    from openneutron.cli.main import DIFFERS
    from openneutron.sweeps.forking import start_ahead
    from openneutron.terminal import console

    axes = {one.name: grid[one.name] for one in _AXES if grid[one.name]}
    more: dict[str, Any] = {"calibration": calibration, "data": data, "limit": limit, "mean": mean, "std": std}
    more |= {"trust": trust, "sizes": _sizes(size or [])}
    described, axes = _merge_with_file(
        models, axes, argument or [], {name: value for name, value in more.items() if value}
    )
    if not scheduler:
        start_ahead((one["source"] for one in described), workers or None)
    from openneutron.sweeps.sweeping import sweep

    with console.progress("starting") as stage:
        found = sweep(
            described, folder=output, workers=workers or None, scheduler=scheduler, timeout=timeout,
            reports=not no_reports, fresh=fresh, parquet=parquet, progress=stage, **axes,
        )  # fmt: skip
    if as_json:
        console.put(json.dumps(list(found), indent=2))
    else:
        _print(found)
    for problem in found.problems:
        console.error(problem)
    if not found.ok:
        raise typer.Exit(DIFFERS)


def _sizes(given: list[str]) -> dict[str, Any]:
    if not given:
        return {}
    from openneutron.onnx.sizes import parse_sizes  # imports torch, and workers wait for the process that starts them

    return parse_sizes(given)


def _merge_with_file(
    models: list[str], axes: dict[str, Any], arguments: list[str], more: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Models and options as `openneutron.sweep` takes them; what the command line gives replaces what a file says."""
    from openneutron.errors import OptionError
    from openneutron.sweeps.toml import read_toml

    values = dict(_argument(text) for text in arguments)
    found: list[dict[str, Any]] = []
    for text in models:
        if text.endswith(".toml"):
            description = read_toml(text)
            found += [{**model, **more} for model in description.models]
            axes = {**description.axes, **axes}
        else:
            found.append({"source": text, **more, **({"arguments": values} if ":" in text else {})})
    if values and not any(one.get("arguments") for one in found):
        raise OptionError("--argument is for factories", hint="name one as package.module:factory")
    return found, axes


def _argument(text: str) -> tuple[str, list[Any]]:
    """A name and its values: numbers, yes and no where they look so, else texts."""
    import ast

    from openneutron.errors import OptionError

    name, equals, values = text.partition("=")
    if not equals or not name.isidentifier() or not values:
        raise OptionError(f"--argument is {text!r}", hint="write name=value or name=value,value")

    def value(part: str) -> Any:
        try:
            return ast.literal_eval(part)
        except (ValueError, SyntaxError):
            return part

    return name, [value(part) for part in values.split(",")]


def _print(found: Sweep) -> None:
    from rich.table import Table
    from rich.text import Text

    from openneutron.report.columns import WHICH_WORD
    from openneutron.sweeps.plan import format_value
    from openneutron.sweeps.task import OK
    from openneutron.terminal import console

    table = Table(header_style="cyan", box=None)
    axes = [name for name in found.axes if name == "target" or len({row[name] for row in found}) > 1]
    for heading in ("model", *axes):
        table.add_column(heading)
    known = [name for name in _FIGURES if name in _ALWAYS or any(row[name] is not None for row in found)]
    for name in known:
        table.add_column(_FIGURES[name], justify="right")
    front = {row["key"] for row in found.pareto("stock_ms", "stock_arena_bytes")}
    for row in found[:_TABLE_ROWS]:
        cells = [_figure(row[name], digits=1 if name == "sqnr_db" else 3) for name in known]
        style = "bold" if row["key"] in front else ""
        table.add_row(row["model"], *(format_value(row[name]) for name in axes), *cells, style=style)
    screen = console.stdout()
    screen.print(table)
    if len(found) > _TABLE_ROWS:
        screen.print(Text(f"and {len(found) - _TABLE_ROWS} more"))
    for row in found:
        if row["status"] != OK:
            which = " ".join([row["model"], *(f"{name}={format_value(row[name])}" for name in axes)])
            screen.print(Text(f"{which}: {row['status']}: {row['reason']}", style="red"), soft_wrap=True)
    good = sum(row["status"] == OK for row in found)
    screen.print(Text(f"{good} of {len(found)} variants ok, {found.known} known before; {found.folder}/index.html"))
    if not good:
        return
    if any(str(row["model"]).endswith(".tflite") for row in found):
        screen.print(Text("open ms of a LiteRT file are the NPU's alone, stock ms the whole model's", style="dim"))
    if screen.is_terminal and len(front) < good:
        screen.print(Text("bold: no other variant of the network is both faster and smaller (stock)", style="dim"))
    screen.print(Text(WHICH_WORD, style="dim"))


def _figure(value: Any, *, digits: int) -> str:
    if value is None:
        return "-"
    return f"{value:,.{digits}f}" if isinstance(value, float) else f"{value:,}"


def _parameter(option: Option) -> inspect.Parameter:
    once = option.help.replace(" (repeatable)", "").replace("; repeatable)", ")")  # here commas do that
    text = f"{once} Several: {_MANY.get(option.kind, 'a,b')}."
    shown = typer.Option(option.flag, help=text)
    annotation: Any = Annotated[str, shown]
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default="", annotation=annotation)


def _with_axes(function: Callable[..., None]) -> None:
    """Let typer see an option for each axis in place of `**grid`."""
    seen = inspect.signature(function, eval_str=True)
    fixed = [one for one in seen.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    vars(function)["__signature__"] = seen.replace(parameters=[*fixed, *map(_parameter, _AXES)])


_with_axes(sweep_models)
