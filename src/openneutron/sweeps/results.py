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
from pathlib import Path
from typing import Any, overload

from openneutron.extras import need
from openneutron.files import write_file
from openneutron.sweeps.figures import LARGER_IS_BETTER
from openneutron.sweeps.task import OK

Row = dict[str, Any]
CSV, JSONL, PAGE, PARQUET = "results.csv", "results.jsonl", "index.html", "results.parquet"
FOR_PARQUET = "a Parquet file"  # said when pyarrow is missing


@dataclass(frozen=True)
class Sweep(Sequence[Row]):
    """One row for each variant, in the order of the grid; `status` is "ok" or the kind of failure.

    `known` rows were in the store already. `problems` are sentences about files that could not be written.
    """

    rows: tuple[Row, ...]
    folder: Path
    axes: tuple[str, ...] = ()
    known: int = 0
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every variant has figures and all files were written."""
        return all(row["status"] == OK for row in self.rows) and not self.problems

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row))

    def pareto(self, *columns: str, by: str = "source") -> list[Row]:
        """Return the rows that no other row dominates in these columns.

        Less is better, except of accuracy, SQNR and operators on the NPU. Networks that do different work have a front each:
        rows compete with those that have the same `by`, a factory's with those of its other arguments; "" has one for all.

        Example:
            >>> found.pareto("stock_ms", "accuracy")
        """
        fronts: dict[Any, list[Row]] = {}
        signs = [-1 if name in LARGER_IS_BETTER else 1 for name in columns]

        def cost(row: Row) -> list[Any]:
            return [sign * row[name] for name, sign in zip(columns, signs, strict=True)]

        good = [row for row in self.rows if all(row.get(name) is not None for name in columns)]
        for row in sorted(good, key=cost):
            front = fronts.setdefault(row.get(by), [])
            # Sorted by the first column, so only rows before this one can beat it.
            if not any(_beats(cost(other), cost(row)) for other in front):
                front.append(row)
        return [row for front in fronts.values() for row in front]

    def table(self) -> Any:
        """The rows as a pandas DataFrame.

        Example:
            >>> found.table().groupby("target")["stock_ms"].min()
        """
        pandas = need("pandas", "a table")
        return pandas.DataFrame(list(self.rows), columns=list(self.columns))

    def parquet(self) -> bytes:
        """The rows as a Parquet file.

        Example:
            >>> Path("results.parquet").write_bytes(found.parquet())
        """
        arrow, writing = need("pyarrow", FOR_PARQUET), need("pyarrow.parquet", FOR_PARQUET)
        out = io.BytesIO()
        table = arrow.table({name: [row.get(name) for row in self.rows] for name in self.columns})
        writing.write_table(table, out)
        return out.getvalue()

    def save(self, *, parquet: bool = False) -> None:
        """Write the files into the folder, each whole or not at all."""
        from openneutron.sweeps.page import page

        columns = self.columns
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(row.get(name)) for name in columns] for row in self.rows)
        write_file(self.folder / CSV, text.getvalue())
        write_file(self.folder / JSONL, "".join(f"{json.dumps(row)}\n" for row in self.rows))
        write_file(self.folder / PAGE, page(self))
        if parquet:
            write_file(self.folder / PARQUET, self.parquet())

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


def _beats(other: Sequence[Any], costs: Sequence[Any]) -> bool:
    return all(a <= b for a, b in zip(other, costs, strict=True)) and list(other) != list(costs)


def _cell(value: Any) -> Any:
    """Escape text that a spreadsheet would read as a formula; reasons may contain names from model files."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@"):
        return f"'{value}"
    return value
