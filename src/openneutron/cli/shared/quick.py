"""Short cuts past typer and rich for `openneutron compile` and `openneutron doctor`.

Build systems call `compile` for each of many models, and importing the two takes longer than compiling a small one; `doctor`
must work where they are what is missing. What is not plainly a correct command line (help, a typing mistake, a missing value)
is left to typer, which knows how to explain it; a test holds both to the same options.
"""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openneutron.cli.shared.compiling import Request

_COMPLETION = "_OPENNEUTRON_COMPLETE"  # set by shells that ask typer for completions


def options() -> dict[str, tuple[str, str]]:
    """Option → (field of `Request`, its type as it is written there)."""
    from openneutron.cli.shared.compiling import Request

    found = {f"--{field.name.replace('_', '-')}": (field.name, str(field.type)) for field in fields(Request)[1:]}
    found["--json"] = found.pop("--as-json")
    found["-o"] = found["--output"]
    return found


def parse(words: list[str]) -> Request | None:
    """The request of a command line behind `compile`; None when typer should look at it.

    Example:
        >>> parse(["model.tflite", "--target", "mcxn94x"]).target
        'mcxn94x'
    """
    from openneutron.cli.shared.compiling import Request

    known = options()
    values: dict[str, Any] = {}
    places: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            places.append(word)
            continue
        name, given, value = word.partition("=")
        if name not in known or (given and not name.startswith("--")):
            return None
        field, kind = known[name]
        if kind == "bool":
            if given:
                return None
            values[field] = True
            continue
        if not given:
            value = next(rest, "-")
            if value.startswith("-"):
                return None
        if kind.startswith("list"):
            values.setdefault(field, []).append(value)
        else:
            values[field] = Path(value) if kind.startswith("Path") else value
    return Request(places[0], **values) if len(places) == 1 and places[0] else None


def quick(arguments: list[str]) -> int | None:
    """Run the command line if it is a plain `compile` or `doctor`, for its exit code; None when it was left alone."""
    if _COMPLETION in os.environ:
        return None
    if arguments in (["doctor"], ["doctor", "--json"]):
        from openneutron.cli.shared.diagnosis import print_diagnosis

        return 0 if print_diagnosis("--json" in arguments) else 1
    request = parse(arguments[1:]) if arguments[:1] == ["compile"] else None
    if request is None:
        return None
    if request.source.endswith(".tflite"):
        # The compiler multiplies no matrices; starting numpy's BLAS threads would take a tenth of a small compile.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from openneutron.cli.shared.compiling import run_compile

    run_compile(request)
    return 0
