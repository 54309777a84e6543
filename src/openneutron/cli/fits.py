"""`openneutron fits`: will this model run on this chip, in how much memory, how fast; and what to change if not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from openneutron.cli.inputs.loading import CALIBRATION_HELP, SIZE_HELP, TRUST_HELP
from openneutron.cli.shared.completion import model_names, target_names
from openneutron.options import SCHEMA, SDK_VERSIONS, check_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from openneutron.analyze.fits import Limits, Row
    from openneutron.report.model import Energy

ALL = "all"


def fits_model(
    source: Annotated[str, typer.Argument(help="What `openneutron compile` takes.", autocompletion=model_names)],
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="CHIP", help="The chip, repeatable, or all of them.", autocompletion=target_names),
    ] = None,
    sram: Annotated[str, typer.Option(help="SRAM it may use, e.g. 512K; else what the chip has.")] = "",
    flash: Annotated[str, typer.Option(help="Flash it may use, e.g. 2M; else what the chip has.")] = "",
    latency: Annotated[str, typer.Option(help="Time it may take, e.g. 20ms; the upper end must keep within it.")] = "",
    sdk: Annotated[str, typer.Option(metavar="VERSION", help=SCHEMA["sdk"].help)] = SDK_VERSIONS[-1],
    duty: Annotated[str, typer.Option(metavar="RATE", help=SCHEMA["duty"].help)] = "",
    battery: Annotated[str, typer.Option(metavar="CHARGE@VOLTS", help=SCHEMA["battery"].help)] = "",
    size: Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help=SIZE_HELP)] = None,
    calibration: Annotated[str, typer.Option(help=CALIBRATION_HELP)] = "",
    trust: Annotated[bool, typer.Option("--trust", help=TRUST_HELP)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say for each chip whether a model fits, with NXP's converter (stock) and in the open schedule.

    Where it does not: the bytes missing, the largest contributor, and which changes help; each one is tried.

    Processors without an NPU (--target cortex_m33) have one row, core; chips say what their core takes alone.

    Exit code 0: what NXP's converter makes fits every chip asked for, and what OpenNeutron makes every processor;
    1: it does not.

    Examples:

    openneutron fits cifarnet

    openneutron fits model.tflite --target mcxn94x --sram 128K --latency 20ms

    openneutron fits model.tflite --duty 1/s --battery 230mAh@3V
    """
    import dataclasses
    import json

    from openneutron.analyze.fits import fits_all
    from openneutron.cli.main import DIFFERS
    from openneutron.cli.shared.fitting import fit_rows
    from openneutron.terminal import console
    from openneutron.terminal.sizes import parse_size

    version = check_options({"sdk": sdk})
    energy_of = _energy_of(duty, battery)
    limits = _limits(
        parse_size(sram, option="--sram") if sram else 0,
        parse_size(flash, option="--flash") if flash else 0,
        parse_milliseconds(latency) if latency else 0.0,
    )
    with console.progress("starting") as stage:
        rows = fit_rows(
            source, _names(target), limits, stage, sizes=size or (), calibration=calibration, trust=trust, **version
        )
    fit = fits_all(rows)
    if as_json:
        shown = [{**dataclasses.asdict(row), "energy": dataclasses.asdict(energy_of(row))} for row in rows]
        console.put(json.dumps({"fits": fit, "rows": shown}, indent=2))
    else:
        _print(rows)
        _print_energy(rows, energy_of)
    if not fit:
        raise typer.Exit(DIFFERS)


def _energy_of(duty: str, battery: str) -> Callable[[Row], Energy]:
    """Return what gives the energy of a row: none without a duty, and of the open schedule, which no board runs."""
    from openneutron.board.energy import energy, parse_battery, parse_duty
    from openneutron.errors import OptionError
    from openneutron.machine import targets
    from openneutron.report.model import Energy

    if battery and not duty:
        raise OptionError("--battery needs --duty", hint="say how often it runs, such as --duty 1/s")
    period, cell = parse_duty(duty) if duty else 0.0, parse_battery(battery) if battery else None

    def energy_of(row: Row) -> Energy:
        need = row.need
        if not duty or row.schedule != "stock" or not need.on_npu:
            return Energy()
        times = (need.milliseconds, need.milliseconds_low, need.milliseconds_high)
        return energy(targets.load(row.target), times, period, cell)

    return energy_of


def _print_energy(rows: list[Row], energy_of: Callable[[Row], Energy]) -> None:
    from rich.text import Text

    from openneutron.report.energy_text import energy_text
    from openneutron.terminal import console

    for row in rows:
        found = energy_of(row)
        if energy_text(found):
            console.stdout().print(Text(f"{row.target}: {energy_text(found)}"))
            for source in found.sources:
                console.stdout().print(Text(f"  {source}", style="dim"))


def parse_milliseconds(text: str) -> float:
    """Milliseconds in "20", "20ms", "1.5 s" or "800us".

    Example:
        >>> parse_milliseconds("1.5s")
        1500.0
    """
    import re

    from openneutron.errors import OptionError

    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|us|µs)?", text.strip().lower())
    if found is None or float(found[1]) == 0:
        raise OptionError(f"--latency is {text!r}", hint="give a time such as 20ms, 1.5s or 800us")
    return float(found[1]) * {"s": 1e3, "us": 1e-3, "µs": 1e-3}.get(found[2], 1.0)


def _limits(sram: int, flash: int, milliseconds: float) -> Limits:
    from openneutron.analyze.fits import Limits

    return Limits(sram, flash, milliseconds)


def _names(given: list[str] | None) -> list[str]:
    """Targets in the order asked for; all of them where none is named."""
    from openneutron.machine import targets

    if not given or ALL in given:
        return list(targets.chips())
    return [targets.load(targets.canonical_name(name)).name for name in dict.fromkeys(given)]


def _print(rows: list[Row]) -> None:
    from rich.table import Table
    from rich.text import Text

    from openneutron.analyze.fits import describe_need
    from openneutron.cli.shared.fitting import worth_telling
    from openneutron.report.columns import WHICH_WORD
    from openneutron.report.latency import latency
    from openneutron.terminal import console

    table = Table(header_style="cyan", box=None)
    for heading in ("target", "schedule", "fits"):
        table.add_column(heading)
    for heading in ("RAM", "of", "flash", "of", "latency"):
        table.add_column(heading, justify="right")
    table.add_column("largest", overflow="fold")
    for row in rows:
        need = row.need
        time = latency(need.milliseconds, need.milliseconds_low, need.milliseconds_high)
        time += "" if need.whole else " (NPU)"
        table.add_row(
            row.target, row.schedule, Text("yes" if row.fits else "no", style="green" if row.fits else "red"),
            f"{need.sram_bytes:,}", f"{row.sram_limit:,}", f"{need.flash_bytes:,}",
            f"{row.flash_limit:,}" if row.flash_limit else "-", time, Text(row.largest),
        )  # fmt: skip
    screen = console.stdout()
    screen.print(table)
    if not any(row.need.on_npu for row in rows):
        screen.print(Text("nothing of it runs on the NPU: `openneutron compile` says why", style="red"))
        return
    for row in rows:
        for note in row.notes:
            screen.print(Text(f"{row.target}: {note}"))
        if row.fits:
            continue
        screen.print(Text(f"{row.target}, {row.schedule}: {row.short}", style="red"))
        shown = worth_telling(row)
        for change in shown:
            option = f" ({change.option})" if change.option else ""
            answer = f"fits: {describe_need(change.need)}" if change.fits else change.short
            screen.print(Text(f"  {change.change}{option}: {answer}"))
        if len(row.changes) > len(shown):
            less = len(row.changes) - len(shown)
            many = "1 other change was" if less == 1 else f"{less} other changes were"
            screen.print(
                Text(f"  {many} tried and {'is' if less == 1 else 'are'} not enough (--json has all)", style="dim")
            )
        if not row.changes and row.need.on_npu:
            screen.print(Text("  no option of the converter changes that: the model itself must become smaller"))
    if any(row.schedule != "core" for row in rows):
        screen.print(Text(WHICH_WORD, style="dim"))
