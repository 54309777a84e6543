"""`openneutron board profile`: times of a model on a board, per layer where the runner gives them, kept in a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openneutron.cli.board.port import BAUD_HELP, BOARD_HELP, PORT_HELP, PROTOCOL_HELP
from openneutron.cli.shared.completion import target_names

if TYPE_CHECKING:
    from openneutron.board.ledger import Measurement
    from openneutron.cli.board.subject import Subject
    from openneutron.modelrunner.answers import BoardModel


def board_profile(
    file: Annotated[Path, typer.Argument(help="A .tflite or .pte file.")],
    port: Annotated[str, typer.Option("-p", "--port", help=PORT_HELP)],
    runs: Annotated[int, typer.Option(metavar="COUNT", min=1, max=1000, help="How often it runs.")] = 5,
    ledger: Annotated[
        Path | None, typer.Option(help="Add the measurement to this .toml file; `openneutron board learn` reads it.")
    ] = None,
    source: Annotated[Path | None, typer.Option(help="For --ledger: the LiteRT model before NXP's converter.")] = None,
    chip: Annotated[
        str, typer.Option(metavar="CHIP", help="For --ledger: the chip.", autocompletion=target_names)
    ] = "",
    converter: Annotated[
        str, typer.Option(metavar="VERSION", help="For --ledger: NXP's converter, where the file does not say.")
    ] = "",
    fetch: Annotated[bool, typer.Option("--fetch", help="For --ledger: weights are fetched from flash.")] = False,
    note: Annotated[str, typer.Option(help="For --ledger: board, clock, anything to remember.")] = "",
    board: Annotated[str, typer.Option(metavar="BOARD", help=BOARD_HELP)] = "",
    protocol: Annotated[str, typer.Option(help=PROTOCOL_HELP)] = "auto",
    baud: Annotated[int, typer.Option(metavar="BAUD", min=300, help=BAUD_HELP)] = 115_200,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a model several times and print what the board measured.

    Examples:

    openneutron board profile model.tflite -p /dev/ttyACM0 --runs 10

    openneutron board profile converted_by_nxp.tflite -p /dev/ttyACM0 --source model.tflite --chip mcxn94x --ledger points.toml
    """
    import dataclasses
    import json
    import statistics

    from openneutron.board.ledger import append_point
    from openneutron.cli.board.session import open_session
    from openneutron.cli.board.subject import load_subject
    from openneutron.files import check_target
    from openneutron.terminal import console

    subject = load_subject(file, board=board)
    if ledger is not None:
        check_target(ledger, ".toml", inputs=(file, source))
    point = None if ledger is None else new_point(subject, ledger, source, chip, converter, note, fetch)
    data = subject.bytes_of(subject.arrays(None, 0))
    with console.progress("connecting") as stage, open_session(subject, port, protocol, baud, stage) as runner:
        times = []
        for at in range(runs):
            stage(f"run {at + 1} of {runs}")
            times.append(runner.run(data).microseconds / 1e3)
        model = runner.info()
    if ledger is not None and point is not None:
        append_point(ledger, add_measurement(point, times, model))
    middle = statistics.median(times)
    if as_json:
        layers = [dataclasses.asdict(one) for one in model.layers]
        shown = {"milliseconds": times, "median": middle, "arena_bytes": model.arena_bytes, "layers": layers}
        console.put(json.dumps(shown | {"notes": subject.notes}, indent=2))
        return
    spread = f" ({min(times):,.3f} to {max(times):,.3f})" if runs > 1 else ""
    console.put(f"{middle:,.3f} ms, the median of {runs} runs{spread}, measured by the board")
    if model.arena_bytes:
        console.put(f"arena used: {model.arena_bytes:,} bytes")
    total = sum(one.microseconds for one in model.layers) or 1.0
    for one in model.layers:
        share = one.microseconds / total
        console.put(f"  {one.microseconds / 1e3:10,.3f} ms {share:6.1%}  {one.unit}  {one.kind:20} {one.name}")
    for text in subject.notes:
        console.put(f"note: {text}")
    if ledger is not None:
        console.put(f"added to {ledger}")


def new_point(
    subject: Subject, ledger: Path, source: Path | None, chip: str, converter: str, note: str, fetch: bool
) -> Measurement:
    """Return what a ledger's point says beside the measurement; an `OptionError` names what is missing, before any upload."""
    import datetime
    import hashlib
    import os

    from openneutron.board.ledger import Measurement
    from openneutron.errors import OptionError
    from openneutron.files import kind_of, read_file
    from openneutron.litert.read import read_model
    from openneutron.machine import targets
    from openneutron.modelrunner.connect import TFLM
    from openneutron.nxp.converted import check_same_model, converted_for, converter_version

    if subject.payload is not None:
        raise OptionError(
            "a ledger is of NXP's converter and driver, and this is open microcode", where=str(subject.file),
            hint="measure what --converter nxp makes",
        )  # fmt: skip
    if not chip or source is None:
        missing = " and ".join(name for name, given in (("--chip", chip), ("--source", source)) if not given)
        raise OptionError(
            f"--ledger needs {missing}", hint="--chip mcxn94x --source model.tflite, the model before NXP's converter"
        )
    target = targets.load(targets.canonical_name(chip))
    before, described = read_file(source), ""
    if subject.protocol == TFLM:
        model = read_model(subject.data, source=str(subject.file))
        described = model.description
        named = converted_for(described)
        if named and named != target.name:
            raise OptionError(
                f"it was converted for {named}, and --chip is {target.name}", where=str(subject.file),
                hint=f"--chip {named}, or measure the file for that chip",
            )  # fmt: skip
        if kind_of(before) == "tflite":
            check_same_model(
                model.main, read_model(before, source=str(source)).main, where=str(subject.file), source_name=str(source),
                hint="--source is the model before NXP's converter",
            )  # fmt: skip
    return Measurement(
        model=os.path.relpath(source, ledger.parent),
        chip=target.name,
        source=note or "measured with `openneutron board profile`",
        date=datetime.date.today().isoformat(),
        sha256=hashlib.sha256(before).hexdigest(),
        converter=converter or converter_version(described),
        runtime="tflm" if subject.protocol == "tflm" else "executorch",
        npu_hz=target.clock_hz,
        cpu_hz=target.cpu_clock_hz,
        file_bytes=len(subject.data),
        fetch_constants=fetch,
    )


def add_measurement(point: Measurement, times: list[float], model: BoardModel) -> Measurement:
    """Return the point with the board's figures."""
    from dataclasses import replace

    layers: dict[str, float] = {}
    for at, one in enumerate(model.layers):
        name = one.name or one.kind
        layers[name if name not in layers else f"{name} ({at})"] = one.microseconds / 1e3
    runs = tuple(round(one, 6) for one in times)
    return replace(point, milliseconds=runs, arena_bytes=model.arena_bytes, layers=layers or None)
