"""`openneutron disasm`: the microcode of a file as text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def disassemble_file(
    file: Annotated[Path, typer.Argument(help="A .pte, .tflite, payload or microcode file.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: where each NeutronGraph is, and its lines.")
    ] = False,
) -> None:
    """Print the microcode, one instruction per line with its operands and parameters.

    Example: openneutron disasm cifarnet.pte
    """
    from openneutron.cli.inputs.blocks import blocks_of_file
    from openneutron.errors import FormatError
    from openneutron.files import read_file
    from openneutron.microcode.disassemble import disassemble
    from openneutron.terminal import console

    data = read_file(file)
    with console.progress("reading"):
        found = blocks_of_file(data, str(file), every_method=True)
        if not found:
            raise FormatError(
                "the file holds no NeutronGraph", where=str(file), hint="compile it: `openneutron compile`"
            )
        texts = [(blocks.where, disassemble(blocks.program())) for blocks in found]
    if as_json:
        import json

        console.put(json.dumps([{"where": where, "lines": text.splitlines()} for where, text in texts], indent=2))
        return
    for where, text in texts:
        console.put(f"; {where}\n{text.rstrip()}")
