"""A folder of results by key; each file is written once, completely, and never changes.

Example:
    >>> store = Store("folder")
    >>> store.put(key, {"status": "ok", "cycles": 1200})
    >>> store.get(key)["cycles"]
    1200
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from openneutron.files import make_folder, write_file


class Store:
    """`store/ab/abcd….json` holds a row's figures, `reports/abcd….html` the variant's report."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = make_folder(folder)

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the row of a key; None when there is none or it is incomplete."""
        try:
            found = json.loads(self._row(key).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and "status" in found else None

    def put(self, key: str, row: dict[str, Any], report: str = "") -> None:
        """Store a row and its report; the row is written last, so that an existing row is complete."""
        if report:
            make_folder(self.folder / "reports")
            write_file(self.report(key), report)
        make_folder(self._row(key).parent)
        write_file(self._row(key), json.dumps(row))

    def report(self, key: str) -> Path:
        """Return the path of a key's report, if there is one."""
        return self.folder / "reports" / f"{key[:24]}.html"

    def _row(self, key: str) -> Path:
        return self.folder / "store" / key[:2] / f"{key}.json"
