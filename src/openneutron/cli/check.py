"""`openneutron check`: keeps models within the budgets of an openneutron.toml, for continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openneutron.cli.shared.budgets import Entry, Line
    from openneutron.executorch.capture.sources import Loaded
    from openneutron.program import Program


def check_budgets(
    file: Annotated[Path, typer.Argument(help="The file with the budgets.")] = Path("openneutron.toml"),
    baseline: Annotated[
        Path | None, typer.Option(help="What `check --json` printed before a change: shows the difference to it.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the table as Markdown, for a pull request's summary.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the measurements as JSON.")] = False,
) -> None:
    """Compile the models of an openneutron.toml and compare cycles, memory, flash, LSB and accuracy with its budgets.

    Exit code 0: every budget is kept; 1: at least one is not.

    Examples:

    openneutron check

    openneutron check models/openneutron.toml --markdown summary.md --baseline main.json
    """
    import json

    from openneutron.cli.main import DIFFERS
    from openneutron.cli.shared.budgets import compare, read_budgets
    from openneutron.errors import OptionError
    from openneutron.files import check_target, write_file
    from openneutron.terminal import console

    if markdown is not None:
        check_target(markdown)
    if not file.exists():
        hint = "write one with a [[model]] table per model; docs/ci.md and examples/ci show how"
        raise OptionError("there is no such file", where=str(file), hint=hint)
    entries = read_budgets(file)
    before = _baseline(baseline) if baseline is not None else {}
    lines: list[Line] = []
    measured: dict[str, Mapping[str, float]] = {}
    goldens: list[str] = []
    with console.progress("starting") as stage:
        for entry in entries:
            measured[entry.name] = measure(entry, lambda text, name=entry.name: stage(f"{name}: {text}"), goldens)  # type: ignore[misc]
            lines += compare(entry, measured[entry.name], before.get(entry.name))
    broken = [line for line in lines if not line.kept]
    if markdown is not None:
        write_file(markdown, as_markdown(lines))
    if as_json:
        over = [{"model": line.entry, "budget": line.kind.name} for line in broken]
        console.put(
            json.dumps({"kept": not broken, "measured": measured, "broken": over, "goldens": goldens}, indent=2)
        )
    else:
        _print(lines, goldens)
    if broken:
        raise typer.Exit(DIFFERS)


def measure(entry: Entry, stage: Callable[[str], None], goldens: list[str] | None = None) -> dict[str, float]:
    """Everything the entry budgets, measured; `goldens` gets the layers that are not compared with LiteRT's reference."""
    from openneutron.cli.inputs.loading import compile_source
    from openneutron.files import read_file
    from openneutron.report.facts import node_counts

    options: dict[str, Any] = {"target": entry.target, "optimize": entry.optimize, "fit_bytes": entry.fit}
    if entry.sizes:
        options["sizes"] = entry.sizes
    if entry.calibration:
        options["calibration"] = entry.calibration
    if not entry.per_channel:
        options["per_channel"] = False
    program, loaded = compile_source(entry.source, stage, dump_intermediates="lsb" in entry.budget, **options)
    totals, stock, counts = program.report.totals, program.report.stock, node_counts(program.report)
    found: dict[str, float] = {
        "cycles": totals.cycles,
        "milliseconds": totals.milliseconds,
        "milliseconds_high": totals.milliseconds_high,
        "stock_milliseconds": stock.milliseconds,
        "stock_milliseconds_high": stock.milliseconds_high,
        "stock_sram": stock.arena_bytes,
        "stock_flash": stock.weight_bytes + stock.microcode_bytes + stock.kernel_bytes,
        "sram": totals.peak_bytes,
        "flash": totals.weight_bytes + totals.microcode_bytes,
        "cpu_nodes": counts.inner - counts.delegated,
    }
    if "lsb" in entry.budget:
        stage("verifying every layer")
        found["lsb"] = _largest_lsb(entry, program, loaded, [] if goldens is None else goldens)
    if {"accuracy", "accuracy_drop"} & set(entry.budget):
        from openneutron.analyze.data.labelled import wanted_by, wanted_by_litert
        from openneutron.analyze.data.source import Data
        from openneutron.cli.evaluate import litert_scores, torch_scores
        from openneutron.litert.read import read_model

        data = Data(entry.data, entry.limit, entry.mean, entry.std)
        if program.kind == "tflite":
            original = read_file(entry.source)
            wanted = wanted_by_litert(read_model(original, source=entry.source).main, entry.source)
            forms = {"reference": original, "compiled": program.data}
            first, last = litert_scores(entry.source, forms, data.read(wanted), stage)
        else:
            samples = data.read(wanted_by(loaded), zoo=entry.source)
            first, _, last = torch_scores(program, loaded, samples, stage)
        found |= {"accuracy": last.accuracy, "accuracy_drop": max(first.accuracy - last.accuracy, 0.0)}
    return found


def _largest_lsb(entry: Entry, program: Program, loaded: Loaded, goldens: list[str]) -> float:
    """The largest difference of any layer from the reference, on seeded random inputs."""
    from openneutron.analyze.exactness import verify_models
    from openneutron.cli.shared.reporting import litert_models
    from openneutron.options import Options

    options = Options(target=entry.target, optimize=entry.optimize, fit_bytes=entry.fit, source=entry.source)
    found = verify_models(litert_models(program, loaded), options, seed=entry.seed)
    for one in found:
        goldens += [f"{entry.name}: {', '.join(names)}: compared with {why}" for why, names in one.exceptions.items()]
    return max((layer.largest for one in found for layer in (*one.layers, *one.outputs)), default=0.0)


def _baseline(path: Path) -> dict[str, dict[str, float]]:
    import json

    from openneutron.errors import FormatError
    from openneutron.files import read_file

    try:
        found = json.loads(read_file(path))["measured"]
        return {str(name): {str(k): float(v) for k, v in values.items()} for name, values in found.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        hint = "write it with `openneutron check --json`"
        raise FormatError("this is no baseline", where=str(path), hint=hint) from None


def _cells(line: Line) -> tuple[str, ...]:
    """Budget, measurement, room left, change since the baseline."""
    kind = line.kind
    left = line.measured - line.allowed if kind.at_least else line.allowed - line.measured
    room = (
        f"{100 * left:+.2f} points"
        if kind.is_share
        else f"{left / line.allowed:+.1%}"
        if line.allowed
        else kind.change(left)
    )
    change = ""
    if line.before is not None:
        delta = line.measured - line.before
        change = kind.change(delta) if delta else "same"
    sign = "≥" if kind.at_least else "≤"
    return f"{sign} {kind.text(line.allowed)}", kind.text(line.measured), room, change


def as_markdown(lines: list[Line]) -> str:
    """The comparison as a Markdown table."""
    broken = sum(not line.kept for line in lines)
    head = f"**{broken} of {len(lines)} budgets broken**" if broken else f"All {len(lines)} budgets kept"
    rows = ["| | model | budget | allowed | measured | room | change |", "|---|---|---|---|---|---|---|"]
    for line in lines:
        mark = "✅" if line.kept else "❌"
        rows.append(f"| {mark} | {line.entry} | {line.kind.name} | {' | '.join(_cells(line))} |")
    return "\n".join([head, "", *rows, ""])


def _print(lines: list[Line], goldens: list[str]) -> None:
    from rich.table import Table
    from rich.text import Text

    from openneutron.terminal import console

    changes = any(line.before is not None for line in lines)
    table = Table(header_style="cyan", box=None)
    for heading in ("", "model", "budget"):
        table.add_column(heading)
    for heading in ("allowed", "measured", "room", *(["change"] if changes else [])):
        table.add_column(heading, justify="right")
    for line in lines:
        style = "green" if line.kept else "red"
        mark = Text("kept" if line.kept else "over" if not line.kind.at_least else "under", style=style)
        table.add_row(mark, line.entry, line.kind.name, *_cells(line)[: 4 if changes else 3])
    screen = console.stdout()
    screen.print(table)
    broken = sum(not line.kept for line in lines)
    text = f"{broken} of {len(lines)} budgets broken" if broken else f"all {len(lines)} budgets kept"
    screen.print(text, style="red" if broken else "green")
    for golden in goldens:
        screen.print(f"  {golden}", markup=False, style="dim")
