"""`python -m openneutron.certify out.tflite model.tflite [certificate.json]`: standard library only."""

from __future__ import annotations

import sys
from pathlib import Path

from openneutron.certify.certificate import read
from openneutron.certify.prove import prove
from openneutron.certify.refused import Refused


def main(arguments: list[str]) -> int:
    """Run the command; return 0 when the file is proved, 1 when it is refused, 2 when a file cannot be read."""
    if len(arguments) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        compiled, source, *more = (Path(name).read_bytes() for name in arguments)
    except OSError as error:
        print(_plain(error), file=sys.stderr)
        return 2
    try:
        proof = prove(compiled, source, read(more[0], compiled, source) if more else None)
    except Refused as error:
        print(f"{_plain(arguments[0])}: refused: {_plain(error)}", file=sys.stderr)
        return 1
    print(
        f"{_plain(arguments[0])}: proved, {proof.calls} calls and {proof.copies} copies in {proof.graphs} NeutronGraphs"
    )
    return 0


def _plain(text: object) -> str:
    """Return the text with unprintable characters escaped: names come from the files and could control the terminal."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in str(text))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
