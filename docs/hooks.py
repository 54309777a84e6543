"""Hooks of the documentation's build: links out of docs/ become plain text, and search works in a site opened from disk."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

# A link out of docs/, as pages written for a reader of the repository have them: [`main.c`](../runtime/.../main.c).
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Name the path of each such file instead of linking to it."""
    return markdown if page.url.startswith("reference/") else _OUTSIDE.sub(_named, markdown)


def _named(link: re.Match[str]) -> str:
    text, path = link.group(1), link.group(2)
    return text if path.strip("/") in text else f"{text} (`{path}`)"


# A browser starts no worker from a file and fetches no JSON there, but it runs scripts: so the worker of the search travels as
# text, from which a worker is made, and the index as a script, which the theme looks for when a page comes from disk.
_WORKER = """var __worker = %s;
if (location.protocol === "file:") {
  const Started = window.Worker;
  window.Worker = class extends Started {
    constructor() { super(URL.createObjectURL(new Blob([__worker], { type: "text/javascript" }))); }
  };
}
"""


def on_post_build(config: Any, **_: Any) -> None:
    """Write the two scripts beside the search index."""
    site = Path(config["site_dir"])
    index = (site / "search" / "search_index.json").read_text("utf-8")
    (worker,) = (site / "assets" / "javascripts" / "workers").glob("search.*.min.js")
    (site / "search" / "search_index.js").write_text(f"var __index = {index}", "utf-8")
    (site / "search" / "from_disk.js").write_text(_WORKER % json.dumps(worker.read_text("utf-8")), "utf-8")
