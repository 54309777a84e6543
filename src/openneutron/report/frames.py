"""The lists of a report as tables: plain rows, or a pandas DataFrame.

Example:
    >>> table(report, "kernels").sort_values("cycles", ascending=False).head()
"""

from __future__ import annotations

import dataclasses
from importlib import import_module
from typing import Any

from openneutron.errors import OptionError
from openneutron.extras import extra
from openneutron.report.facts import share
from openneutron.report.model import Kernel, Report

TABLES = ("kernels", "nodes", "operators", "events", "buffers", "pareto", "what_ifs", "outputs")


def rows(report: Report, what: str) -> list[dict[str, Any]]:
    """Return one dictionary per item of a list of the report; kernels also have their share and what bounds them.

    Example:
        >>> rows(report, "kernels")[0]["bound_by"]
        'compute'
    """
    if what not in TABLES:
        raise OptionError(f"the report has no table {what!r}", hint=f"one of {', '.join(TABLES)}")
    found = []
    for item in getattr(report, what):
        row = dataclasses.asdict(item)
        if isinstance(item, Kernel):
            row |= {"bound_by": item.bound_by, "share": share(item, report)}
        found.append(row)
    return found


def table(report: Report, what: str) -> Any:
    """Return a list of the report as a DataFrame, with columns even if there are no rows."""
    with extra("a table (unlike `rows()`)"):
        pandas: Any = import_module("pandas")
    found = rows(report, what)
    if found:
        return pandas.DataFrame(found)
    kinds = {field.name: field.type for field in dataclasses.fields(Report)}
    item = str(kinds[what]).removeprefix("tuple[").partition(",")[0]
    from openneutron.report import model

    return pandas.DataFrame(columns=[field.name for field in dataclasses.fields(getattr(model, item))])
