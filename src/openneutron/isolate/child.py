"""The process of a sandbox: `python -m openneutron.isolate.child FOLDER`.

It takes its rights away, as `request.json` in the folder says, calls the function named there, and leaves `answer.json`.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from openneutron.errors import OpenNeutronError
from openneutron.isolate.cage import Cage, enter

REQUEST, ANSWER = "request.json", "answer.json"


def main(folder: Path) -> None:
    """Serve the folder's request."""
    request = json.loads((folder / REQUEST).read_text("utf-8"))
    cage: dict[str, Any] = request["cage"]
    cage |= {name: tuple(cage[name]) for name in ("readable", "writable")}
    answer: dict[str, Any] = {"missing": enter(Cage(**cage))}
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
