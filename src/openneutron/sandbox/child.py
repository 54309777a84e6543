"""Main function of the sandboxed process: `python -m openneutron.sandbox.child FOLDER`.

It reads `request.json` in the folder, restricts itself, calls the named function and writes `answer.json`.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from openneutron.errors import OpenNeutronError
from openneutron.sandbox.restrictions import Restrictions, restrict

REQUEST, ANSWER = "request.json", "answer.json"


def main(folder: Path) -> None:
    """Run the request in the folder and write the answer."""
    request = json.loads((folder / REQUEST).read_text("utf-8"))
    restrictions: dict[str, Any] = request["restrictions"]
    restrictions |= {name: tuple(restrictions[name]) for name in ("readable", "writable")}
    answer: dict[str, Any] = {"missing": restrict(Restrictions(**restrictions))}
    module, _, name = request["function"].partition(":")
    try:
        answer["value"] = getattr(importlib.import_module(module), name)(folder, **request["given"])
    except OpenNeutronError as error:
        answer["error"] = {
            "kind": type(error).__name__,
            "message": error.message,
            "where": error.where,
            "hint": error.hint,
        }
    except MemoryError:
        answer["error"] = {"kind": "MemoryError"}
    (folder / ANSWER).write_text(json.dumps(answer), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
