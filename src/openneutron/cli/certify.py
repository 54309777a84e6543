"""`openneutron certify`: prove a compiled file against its source with the stand-alone checker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from openneutron.certify.prove import Proof


_LITERT = "model.tflite"  # in the debug bundle of a model that was lowered to LiteRT


def certify_file(
    compiled: Annotated[Path, typer.Argument(help="The compiled .tflite or .pte.")],
    source: Annotated[
        Path | None,
        typer.Argument(
            help="The .tflite it was compiled from, or a debug bundle: of a .pte, or of an .onnx (default: NAME.debug)."
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(help="What `compile --certificate` wrote: saves the search, proves nothing by itself."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Prove that a compiled file computes what its source computes: every call, every byte, whatever the inputs.

    The checker decodes the microcode itself and shares no code with the compiler. Exit code 1 when it refuses the file.

    What PyTorch or ONNX models were quantized and lowered to is a LiteRT model in the debug bundle; the proof begins there.

    Examples:

    openneutron compile model.tflite -o out.tflite && openneutron certify out.tflite model.tflite

    openneutron compile cifarnet -o cifarnet.pte --intermediates cifarnet.debug && openneutron certify cifarnet.pte

    openneutron compile model.onnx -o out.tflite --intermediates out.debug && openneutron certify out.tflite
    """
    import json

    from openneutron.certify.refused import Refused
    from openneutron.cli.main import DIFFERS
    from openneutron.files import kind_of, read_file
    from openneutron.terminal.console import error as say
    from openneutron.terminal.console import put

    data = read_file(compiled)
    try:
        proofs = (
            _program(data, compiled, source)
            if kind_of(data) == "pte"
            else [_model(data, compiled, source, certificate)]
        )
    except Refused as error:
        if as_json:
            put(json.dumps({"proved": False, "refused": str(error), "offset": error.offset}, indent=2))
        else:
            say(f"{compiled}: refused: {error}")
        raise typer.Exit(DIFFERS) from None
    graphs, calls, copies = (sum(getattr(one, name) for one in proofs) for name in ("graphs", "calls", "copies"))
    if as_json:
        put(json.dumps({"proved": True, "graphs": graphs, "calls": calls, "copies": copies}, indent=2))
        return
    many = f"{graphs} NeutronGraph{'' if graphs == 1 else 's'}"
    put(f"{compiled}: proved against {source or 'its debug bundle'}: {calls:,} calls and {copies:,} copies in {many}")


def _model(data: bytes, compiled: Path, source: Path | None, certificate: Path | None) -> Proof:
    from openneutron.certify.certificate import read
    from openneutron.certify.prove import prove
    from openneutron.errors import OptionError
    from openneutron.files import bundle_of, kind_of, read_file

    bundle = source if source is not None and source.is_dir() else bundle_of(compiled)
    if source is None and not (bundle / _LITERT).is_file():
        raise OptionError(
            "a .tflite needs its source",
            where=str(compiled),
            hint=f"name the .tflite it was compiled from; {_hint_at_bundle(bundle)}",
        )
    chosen = bundle / _LITERT if source is None or source.is_dir() else source
    original = read_file(chosen)
    if kind_of(original) != "tflite":
        raise OptionError(
            "a compiled file is proved against the LiteRT model that it was made from, and this is none",
            where=str(chosen), hint=_hint_at_bundle(bundle),
        )  # fmt: skip
    hints = None if certificate is None else read(read_file(certificate), data, original)
    return prove(data, original, hints)


def _hint_at_bundle(bundle: Path) -> str:
    return f"of an .onnx or PyTorch model, keep that model with --intermediates {bundle} and name {bundle / _LITERT}"


def _program(data: bytes, compiled: Path, source: Path | None) -> list[Proof]:
    from openneutron.certify.program import prove_program
    from openneutron.errors import OptionError
    from openneutron.files import bundle_of, read_file

    bundle = source or bundle_of(compiled)
    how = f"openneutron compile … -o {compiled} --intermediates {bundle_of(compiled)}"
    if bundle.is_file():
        raise OptionError(
            "a .pte is proved against the LiteRT models of its debug bundle, and this is a file",
            where=str(bundle), hint=f"make the bundle, {how}, and name the folder",
        )  # fmt: skip

    def part(name: str) -> bytes:
        if not (bundle / name).is_file():
            raise OptionError(f"there is no {name}", where=str(bundle), hint=f"make the debug bundle: {how}")
        return read_file(bundle / name)

    return prove_program(data, part)
