"""`openneutron profile`: what each kernel of a compiled file costs, from a simulated run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openneutron.cli.inputs.frames import FRONT_END_HELP, STREAM_HELP, Given, inputs_of
from openneutron.options import DEFAULT_TARGET

if TYPE_CHECKING:
    from rich.console import RenderableType

    from openneutron.analyze.profile import Code
    from openneutron.machine.targets import Target
    from openneutron.report.model import Report


def profile_file(
    file: Annotated[
        Path, typer.Argument(help="A .pte or .tflite; a .tflite that is not compiled yet is compiled first.")
    ],
    trace: Annotated[
        Path | None, typer.Option(help="Write a trace for ui.perfetto.dev or chrome://tracing (.json).")
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", min=1, help="How many kernels to show.")] = 20,
    bundle: Annotated[
        Path | None, typer.Option(help="Debug bundle that names the layers (default: NAME.debug beside the file).")
    ] = None,
    target: Annotated[
        str, typer.Option(metavar="CHIP", help="The chip to compile an uncompiled .tflite for.")
    ] = DEFAULT_TARGET,
    stream: Annotated[Path | None, typer.Option(help=STREAM_HELP)] = None,
    front_end: Annotated[str, typer.Option(help=FRONT_END_HELP)] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the measured report as JSON.")] = False,
) -> None:
    """Run a compiled file in the simulator and show cycles, MACs, bytes, utilisation and what bounds each kernel.

    Examples:

    openneutron profile model.pte --trace trace.json

    openneutron profile model.tflite --target mcxn94x --top 5

    openneutron profile wake.tflite --stream frames.npz
    """
    import dataclasses

    from openneutron.analyze.profile import profile
    from openneutron.files import bundle_of, check_target, read_file, write_file
    from openneutron.machine import targets
    from openneutron.report.model import to_json
    from openneutron.report.perfetto import trace as trace_of
    from openneutron.terminal import console

    if trace is not None:
        check_target(trace, ".json")
    given = Given(stream=stream, front_end=front_end)
    data = read_file(file)
    with console.progress("running"):
        report = profile(_codes(file, data, bundle or bundle_of(file), target), source=file.name)
        if given.streams:
            frames = len(given.frames(inputs_of(data, str(file)), where=str(file)))
            note = f"{frames:,} frames take {frames * report.totals.cycles:,} cycles: what a frame holds changes none of them"
            report = dataclasses.replace(report, notes=(*report.notes, note))
    chip = targets.load(report.target)
    if trace is not None:
        write_file(trace, trace_of(report, clock_hz=chip.clock_hz))
    if as_json:
        console.put(to_json(report))
        return
    screen = console.stdout()
    screen.print(table(report, chip, top))
    if trace is not None:
        screen.print(f"{trace}: {len(report.events):,} events; open it at ui.perfetto.dev", markup=False)


def _codes(file: Path, data: bytes, bundle: Path, target: str) -> list[Code]:
    import dataclasses

    from openneutron.analyze.litert_layers import is_compiled
    from openneutron.cli.inputs.bundle import codes_of
    from openneutron.convert import convert
    from openneutron.files import kind_of
    from openneutron.options import Options

    if kind_of(data) != "tflite" or is_compiled(data, source=str(file)):
        return codes_of(file, data, bundle)
    result = convert(data, Options(target=target, source=str(file)))
    layers = result.report.kernels
    return [
        dataclasses.replace(code, layers=tuple(layer for layer in layers if layer.graph == number))
        for number, code in enumerate(codes_of(file, result.model, bundle))
    ]


def table(report: Report, target: Target, top: int) -> RenderableType:
    """The costliest kernels, with their sum and the whole run below."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from openneutron.report.facts import costliest, share
    from openneutron.report.latency import latency

    made = Table(header_style="cyan", box=None)
    for heading in ("kernel", "layer", "output"):
        made.add_column(heading, overflow="fold")
    for heading in ("calls", "cycles", "share", "µs", "MACs", "bytes", "array"):
        made.add_column(heading, justify="right")
    made.add_column("bound by")
    for k in costliest(report, top):
        use = k.macs / k.cycles / target.macs_per_cycle if k.cycles else 0.0
        figures = (
            f"{k.calls:,}", f"{k.cycles:,}", f"{share(k, report):.1%}", f"{1e3 * target.milliseconds(k.cycles):,.1f}",
            f"{k.macs:,}" if k.macs else "-", f"{k.weight_bytes + k.activation_bytes:,}", f"{use:.0%}" if k.macs else "-",
        )  # fmt: skip
        made.add_row(k.kernel, Text(k.layer), "x".join(map(str, k.output_shape)), *figures, k.bound_by)
    totals = report.totals
    use = totals.macs / totals.cycles / target.macs_per_cycle if totals.cycles else 0.0
    hidden = max(len(report.kernels) - top, 0)
    more = f"  and {hidden} more" if hidden else ""
    waiting = totals.cycles - sum(k.cycles for k in report.kernels)
    waits = f"; {waiting:,} cycles of waiting for copies" if waiting else ""
    time = latency(totals.milliseconds, totals.milliseconds_low, totals.milliseconds_high)
    line = (
        f"{totals.cycles:,} cycles, {time} at {target.clock_hz / 1e6:g} MHz on {target.name}, open schedule; "
        f"{totals.macs:,} MACs, {use:.0%} of the array{waits}"
    )
    parts: list[RenderableType] = [made, *([Text(more, style="dim")] if more else []), Text(line, style="bold")]
    return Group(*parts, *(Text(note, style="dim") for note in report.notes))
