"""`openneutron certify`: replay a schedule certificate with the stand-alone checker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from openneutron.cli.shared.blocks import Blocks


_HOW = "write one with `openneutron compile model.tflite --certificate model.json`"


def certify_file(
    certificate: Annotated[Path, typer.Argument(help="What `openneutron compile --certificate` wrote.")],
    model: Annotated[
        Path | None, typer.Argument(help="The compiled file: its blocks must be those that the certificate is for.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Prove a schedule again: every read finds its bytes, nothing is overwritten early, buffers keep their limits.

    The checker shares no code with the compiler. Exit code 1 when it refuses the certificate.

    Example: openneutron compile model.tflite --certificate model.json && openneutron certify model.json model_neutron.tflite
    """
    import dataclasses
    import json

    from openneutron import console
    from openneutron.certify.checker import Refused, check
    from openneutron.cli.main import DIFFERS
    from openneutron.cli.shared.blocks import blocks_of_file
    from openneutron.errors import FormatError
    from openneutron.files import read_file

    where = str(certificate)
    try:
        document = json.loads(read_file(certificate))
    except UnicodeDecodeError:
        raise FormatError("this is no text, so no certificate", where=where, hint=_HOW) from None
    except ValueError as error:
        raise FormatError(f"this is no JSON ({error})", where=where, hint=_HOW) from None
    blocks = None if model is None else blocks_of_file(read_file(model), str(model))
    try:
        proof = check(document)
        if blocks is not None:
            _same_blocks(document["graphs"], blocks)
    except Refused as error:
        if as_json:
            console.put(json.dumps({"proved": False, "refused": str(error)}, indent=2))
        else:
            console.error(f"{where}: refused: {error}")
        raise typer.Exit(DIFFERS) from None
    if as_json:
        console.put(json.dumps({"proved": True, **dataclasses.asdict(proof), "model": model and str(model)}, indent=2))
        return
    matched = "" if model is None else f", for the blocks of {model}"
    console.put(f"{where}: proved, {proof.calls:,} calls and {proof.copies:,} copies over {proof.rows:,} rows{matched}")


def _same_blocks(graphs: list[dict[str, Any]], blocks: list[Blocks]) -> None:
    import hashlib

    from openneutron.certify.checker import Refused

    if len(graphs) != len(blocks):
        raise Refused(f"it is for {len(graphs)} NeutronGraphs, the file has {len(blocks)}")
    for graph, block in zip(graphs, blocks, strict=True):
        for name, data in (("microcode", block.microcode), ("weights", block.weights)):
            if graph["digests"][name] != hashlib.sha256(data).hexdigest():
                raise Refused(f"{block.where}: its {name} is not what the certificate is for")
