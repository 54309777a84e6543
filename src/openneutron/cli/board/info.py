"""`openneutron board info`: what runs on a board, and what its model takes and gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from openneutron.cli.board.port import BAUD_HELP, PORT_HELP, PROTOCOL_HELP

if TYPE_CHECKING:
    from openneutron.modelrunner.answers import BoardModel


def board_info(
    port: Annotated[str, typer.Option("-p", "--port", help=PORT_HELP)],
    protocol: Annotated[str, typer.Option(help=PROTOCOL_HELP)] = "auto",
    baud: Annotated[int, typer.Option(metavar="BAUD", min=300, help=BAUD_HELP)] = 115_200,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say which runner a board has, and describe its model.

    Example: openneutron board info -p /dev/ttyACM0
    """
    import dataclasses
    import json

    from openneutron.modelrunner.connect import connect
    from openneutron.terminal import console

    with console.progress("asking the board"), connect(port, protocol=protocol, baud=baud) as runner:
        model, spoken = runner.info(), runner.protocol
    if as_json:
        console.put(json.dumps({"port": port, "runner": spoken, "model": dataclasses.asdict(model)}, indent=2))
        return
    console.put(f"{port}: {spoken}")
    for line in model_lines(model):
        console.put(line)


def model_lines(model: BoardModel) -> list[str]:
    """Return the lines that describe a model on a board."""
    if model.empty:
        return ["no model is loaded, or its description is longer than the runner's buffer"]
    found = []
    for side, tensors in (("input", model.inputs), ("output", model.outputs)):
        for one in tensors:
            scale = f", scale {one.scale:g}, zero point {one.zero_point}" if one.scale else ""
            order = (
                f", in memory in the order {list(one.dim_order)}"
                if list(one.dim_order) != sorted(one.dim_order)
                else ""
            )
            found.append(f"{side} {one.name}: {one.dtype} {list(one.shape)}, {one.nbytes:,} bytes{scale}{order}")
    if model.arena_bytes:
        found.append(f"arena used: {model.arena_bytes:,} bytes")
    if model.microseconds:
        found.append(f"last run: {model.microseconds / 1e3:,.3f} ms")
    return found
