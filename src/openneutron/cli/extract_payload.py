"""`openneutron extract-payload`: a delegate's payload as a file of its own, or as C source for a bare-metal application."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from openneutron.executorch.deliver.embed import Array, Border


def extract_payload(
    file: Annotated[Path, typer.Argument(help="A compiled .pte or .tflite file, or a payload.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="x.bin: the bytes. x.c: C source, and x.h with its sizes.")
    ],
    delegate: Annotated[
        int | None, typer.Option(help="Which delegate, counted from 0, when there are several.")
    ] = None,
    name: Annotated[str, typer.Option(help="What C symbols begin with; the file's name without it.")] = "",
    inputs: Annotated[
        Path | None, typer.Option(help="Embed these quantized inputs in the C source, for a self-test (.npy or .npz).")
    ] = None,
    random_inputs: Annotated[
        int | None, typer.Option(metavar="SEED", help="Embed random inputs in the C source.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Take the payload out of a compiled model.

    Examples:

    openneutron extract-payload cifarnet.pte -o cifarnet.bin

    openneutron extract-payload cifarnet.pte -o model.c --random-inputs 0
    """
    from openneutron.cli.inputs.payloads import bordered_payload
    from openneutron.errors import OptionError
    from openneutron.files import check_target, read_file, write_file

    check_target(output, ".bin", ".c")
    if output.suffix != ".c" and (inputs is not None or random_inputs is not None or name):
        raise OptionError(
            "--inputs, --random-inputs and --name are for C source", where=str(output), hint="name a .c file"
        )
    if inputs is not None and random_inputs is not None:
        raise OptionError("--inputs and --random-inputs exclude each other", hint="give one of them")
    whole = read_file(file)
    where, data, border = bordered_payload(whole, file.name, delegate)
    if output.suffix != ".c":
        write_file(output, data)
        _say([output], len(data), where, as_json, border)
        return
    from openneutron.analyze.data.arrays import read_arrays
    from openneutron.compiler.kernels import rules
    from openneutron.executorch.deliver import embed
    from openneutron.microcode.payload import parse_payload
    from openneutron.microcode.reorder import in_argument_order

    header = output.with_suffix(".h")
    check_target(header)
    rules()  # kernels declare their parameters when their files are imported
    data = in_argument_order(data, where=where)
    payload = parse_payload(data, where=where)
    named = border or embed.numbered_border(payload)
    arrays = None
    if inputs is not None:
        arrays = arrays_in_order(read_arrays(inputs), named.inputs, str(inputs))
    elif random_inputs is not None:
        arrays = embed.random_inputs(payload, seed=random_inputs, where=where)
    made = embed.embed(data, name=name or output.stem, header=header.name, where=where, inputs=arrays, border=named)
    write_file(output, made.source)
    write_file(header, made.header)
    _say([output, header], len(data), where, as_json, named)


def arrays_in_order(given: list[Array] | dict[str, Array], names: tuple[str, ...], where: str) -> list[Array]:
    """Return arrays in the order of the payload's inputs: those of a file by name, a single one whatever it is called."""
    if not isinstance(given, dict):
        return given
    if len(given) == 1 == len(names):
        return list(given.values())
    if sorted(given) != sorted(names):
        from openneutron.errors import OptionError

        message = f"it has the arrays {', '.join(sorted(given))}"
        raise OptionError(message, where=where, hint=f"name them as the inputs: {', '.join(names)}")
    return [given[name] for name in names]


def _say(files: list[Path], size: int, where: str, as_json: bool, border: Border | None) -> None:
    import json

    from openneutron.terminal import console

    names = [str(file) for file in files]
    if as_json:
        description: dict[str, object] = {"files": names, "payload_bytes": size, "where": where}
        if border is not None:
            description |= {"inputs": border.inputs, "outputs": border.outputs, "notes": border.notes}
        console.put(json.dumps(description, indent=2))
    else:
        console.put(f"{', '.join(names)}: payload of {size:,} bytes, {where}")
        for note in border.notes if border is not None else ():
            console.put(f"  {note}")
