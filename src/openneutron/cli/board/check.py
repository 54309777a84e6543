"""`openneutron board check`: compare a board's bytes with the exact results and with silicon's rounding."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openneutron.cli.board.port import BAUD_HELP, BOARD_HELP, INPUT_HELP, PORT_HELP, PROTOCOL_HELP

if TYPE_CHECKING:
    from openneutron.modelrunner.compare import Comparison


def board_check(
    file: Annotated[Path, typer.Argument(help="A .tflite or .pte file.")],
    port: Annotated[str, typer.Option("-p", "--port", help=PORT_HELP)],
    reference: Annotated[
        Path | None,
        typer.Option(help="For a file that NXP's converter made: the .tflite it came from, or an open compile of it."),
    ] = None,
    input: Annotated[Path | None, typer.Option("--input", "-i", help=INPUT_HELP)] = None,
    samples: Annotated[int, typer.Option(metavar="COUNT", min=1, help="Random inputs to try, without --input.")] = 3,
    seed: Annotated[int, typer.Option(metavar="SEED", min=0, help="Seed of the first.")] = 0,
    board: Annotated[str, typer.Option(metavar="BOARD", help=BOARD_HELP)] = "",
    protocol: Annotated[str, typer.Option(help=PROTOCOL_HELP)] = "auto",
    baud: Annotated[int, typer.Option(metavar="BAUD", min=300, help=BAUD_HELP)] = 115_200,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a model on a board and compare every byte: with LiteRT's exact values, and with silicon's shorter multipliers.

    Exit code 0: all bytes equal one of the two; 1: they equal neither.

    Examples:

    openneutron board check model.tflite -p /dev/ttyACM0 --input sample.npy

    openneutron board check converted_by_nxp.tflite -p /dev/ttyACM0 --reference model.tflite
    """
    import dataclasses
    import json

    from openneutron.cli.board.session import open_session
    from openneutron.cli.board.subject import load_subject, outputs_of, references
    from openneutron.cli.main import DIFFERS
    from openneutron.modelrunner.compare import compare_outputs
    from openneutron.terminal import console

    subject = load_subject(file, board=board)
    tries = [subject.arrays(input, seed)] if input else [subject.arrays(None, seed + at) for at in range(samples)]
    found: dict[str, list[tuple[Comparison, ...]]] = {}
    with console.progress("computing the expected values") as stage:
        expected = references(subject, reference, tries)
        stage("connecting")
        with open_session(subject, port, protocol, baud, stage) as runner:
            model, retries = runner.info(), 0
            for at, arrays in enumerate(tries):
                ran = runner.run(subject.bytes_of(arrays), progress=stage)
                retries += ran.retries
                outputs = outputs_of(ran, model)
                for name, wanted in expected.items():
                    found.setdefault(name, []).append(compare_outputs(outputs, wanted[at], where=port))
    equal = [name for name, runs in found.items() if all(one.equal for run in runs for one in run)]
    if as_json:
        raw = {name: [[dataclasses.asdict(one) for one in run] for run in runs] for name, runs in found.items()}
        shown = {"equal": equal, "runs": len(tries), "retries": retries, "comparisons": raw, "notes": subject.notes}
        console.put(json.dumps(shown, indent=2))
    else:
        for name, compared in found.items():
            for line in comparison_lines(name, compared):
                console.put(line)
        for note in subject.notes:
            console.put(f"note: {note}")
    if not equal:
        raise typer.Exit(DIFFERS)


_MEANING = {"exact": "LiteRT's exact values", "silicon": "silicon's 16-bit multipliers (rounding of halves assumed)"}


def comparison_lines(name: str, runs: list[tuple[Comparison, ...]]) -> list[str]:
    """Return a line for all runs that are equal, or one for the worst run of each output that differs."""
    meaning, count = _MEANING[name], f"{len(runs)} input{'s' if len(runs) != 1 else ''}"
    lines = []
    for at in range(len(runs[0])):
        mine = [run[at] for run in runs]
        differing, elements = sum(one.differing for one in mine), sum(one.elements for one in mine)
        worst = max(mine, key=lambda one: (not one.equal, one.worst))
        if worst.equal:
            lines.append(f"{worst.name}: equals {meaning} on {elements:,} values of {count}")
            continue
        lines.append(
            f"{worst.name}: {differing:,} of {elements:,} values of {count} differ from {meaning}; the worst by "
            f"{worst.worst:g} at {list(worst.at)} (board {worst.board:g}, expected {worst.expected:g}), first wrong byte "
            f"{worst.first_byte}"
        )
    return lines
