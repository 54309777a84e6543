"""`openneutron board run`: run a model on a board."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from openneutron.cli.board.port import BAUD_HELP, BOARD_HELP, INPUT_HELP, PORT_HELP, PROTOCOL_HELP


def board_run(
    file: Annotated[Path, typer.Argument(help="A .tflite or .pte file.")],
    port: Annotated[str, typer.Option("-p", "--port", help=PORT_HELP)],
    input: Annotated[Path | None, typer.Option("--input", "-i", help=INPUT_HELP)] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the outputs there (.npz, or .npy for one).")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="SEED", min=0, help="Seed of the random data.")] = 0,
    board: Annotated[str, typer.Option(metavar="BOARD", help=BOARD_HELP)] = "",
    protocol: Annotated[str, typer.Option(help=PROTOCOL_HELP)] = "auto",
    baud: Annotated[int, typer.Option(metavar="BAUD", min=300, help=BAUD_HELP)] = 115_200,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Upload a model, run it once, and print its outputs and the time that the board measured.

    Example: openneutron board run model.tflite -p /dev/ttyACM0 --input sample.npy -o board.npz
    """
    import json

    from openneutron.cli.board.session import describe_array, open_session
    from openneutron.cli.board.subject import load_subject, outputs_of
    from openneutron.files import check_target
    from openneutron.terminal import console

    if output is not None:
        check_target(output, ".npz", ".npy", inputs=(file, input))
    subject = load_subject(file, board=board)
    arrays = subject.arrays(input, seed)
    with console.progress("connecting") as stage, open_session(subject, port, protocol, baud, stage) as runner:
        ran = runner.run(subject.bytes_of(arrays), progress=stage)
        outputs = outputs_of(ran, runner.info())
    if output is not None:
        from openneutron.analyze.data.arrays import write_arrays

        write_arrays(output, outputs)
    if as_json:
        described = {name: {"dtype": str(one.dtype), "shape": list(one.shape)} for name, one in outputs.items()}
        shown = {"outputs": described, "microseconds": ran.microseconds, "retries": ran.retries, "notes": subject.notes}
        console.put(json.dumps(shown, indent=2))
        return
    for name, value in outputs.items():
        console.put(f"{name}: {describe_array(value)}")
    console.put(f"the board measured {ran.microseconds / 1e3:,.3f} ms")
    if ran.retries:
        console.put(f"the line is noisy: {ran.retries} requests were repeated")
    for note in subject.notes:
        console.put(f"note: {note}")
