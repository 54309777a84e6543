"""Hooks of the documentation's build: links to files of the repository, which the site does not hold, become plain text."""

from __future__ import annotations

import re
from typing import Any

# A link out of docs/, as pages written for a reader of the repository have them: [`main.c`](../runtime/.../main.c).
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Name the path of each such file instead of linking to it."""
    return markdown if page.url.startswith("reference/") else _OUTSIDE.sub(_named, markdown)


def _named(link: re.Match[str]) -> str:
    text, path = link.group(1), link.group(2)
    return text if path.strip("/") in text else f"{text} (`{path}`)"
