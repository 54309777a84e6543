"""The rows of a sweep, as a table in memory and as files: results.csv, results.jsonl, index.html.

Example:
    >>> found = on.sweep("model.tflite", target="all", folder="sweep")
    >>> [row["target"] for row in found.pareto("stock_ms", "stock_arena_bytes")]
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, overload

from openneutron.files import write_file
from openneutron.sweeps.task import OK

Row = dict[str, Any]
CSV, JSONL, PAGE = "results.csv", "results.jsonl", "index.html"


@dataclass(frozen=True)
class Sweep(Sequence[Row]):
    """One row for each variant, in the order of the grid; `status` is "ok", or what kept it from having figures.

    `known` rows were in the store already.
    """

    rows: tuple[Row, ...]
    folder: Path
    axes: tuple[str, ...] = ()
    known: int = 0

    @property
    def ok(self) -> bool:
        """Whether every variant has figures."""
        return all(row["status"] == OK for row in self.rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row))

    def pareto(self, *columns: str) -> list[Row]:
        """The rows that no other beats: none is as small in all of these columns and smaller in one.

        Example:
            >>> found.pareto("stock_ms", "stock_flash_bytes")
        """
        good = [row for row in self.rows if row["status"] == OK and all(row.get(name) is not None for name in columns)]
        front: list[Row] = []
        for row in sorted(good, key=lambda row: [row[name] for name in columns]):
            # Sorted by the first column, so only rows before this one can beat it.
            if not any(_beats(other, row, columns) for other in front):
                front.append(row)
        return front

    def table(self) -> Any:
        """The rows as a pandas DataFrame.

        Example:
            >>> found.table().groupby("target")["stock_ms"].min()
        """
        from openneutron.extras import extra

        with extra("a table"):
            pandas: Any = import_module("pandas")
        return pandas.DataFrame(list(self.rows), columns=list(self.columns))

    def save(self) -> None:
        """Write the three files into the folder, each whole or not at all."""
        from openneutron.sweeps.page import page

        columns = self.columns
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(row.get(name)) for name in columns] for row in self.rows)
        write_file(self.folder / CSV, text.getvalue())
        write_file(self.folder / JSONL, "".join(f"{json.dumps(row)}\n" for row in self.rows))
        write_file(self.folder / PAGE, page(self))

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, at: int | slice) -> Row | tuple[Row, ...]:
        return self.rows[at]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __repr__(self) -> str:
        good = sum(row["status"] == OK for row in self.rows)
        return f"<Sweep of {len(self.rows)} variants, {good} ok, in {str(self.folder)!r}>"

    def _repr_html_(self) -> str:
        return str(self.table().to_html(index=False))


def _beats(other: Row, row: Row, columns: Sequence[str]) -> bool:
    return all(other[name] <= row[name] for name in columns) and any(other[name] < row[name] for name in columns)


def _cell(value: Any) -> Any:
    """Spreadsheets take a text that begins like a formula for one; reasons come from model files."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@"):
        return f"'{value}"
    return value
