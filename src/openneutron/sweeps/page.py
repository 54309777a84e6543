"""One HTML file about a sweep: each variant a dot on axes to choose, the Pareto front, filters; needs no network.

Example:
    >>> write_file("index.html", page(found))
"""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING

from openneutron._version import __version__
from openneutron.sweeps.figures import FIGURES, LARGER_IS_BETTER
from openneutron.sweeps.scoring import SCORES

if TYPE_CHECKING:
    from openneutron.sweeps.results import Sweep


def page(sweep: Sweep) -> str:
    """Return the page. Rows are stored as arrays under one list of names, so 10,000 of them stay a few megabytes."""
    columns = [name for name in sweep.columns if name != "key"]
    data = {
        "columns": columns,
        "rows": [[row.get(name) for name in columns] for row in sweep.rows],
        "figures": {name: label for name, label in (FIGURES | SCORES).items() if name in columns and name != "fits"},
        "larger": sorted(LARGER_IS_BETTER),
        "filters": ["model", *sweep.axes, "status"],
        "version": __version__,
    }
    # In a script a "<" could end it; JSON has another spelling for it.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    template = (resources.files(__package__) / "page.html").read_text("utf-8")
    return template.replace("/*DATA*/", text)
