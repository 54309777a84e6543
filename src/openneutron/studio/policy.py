"""The Content-Security-Policy of the studio's page.

Scripts come from the page's own address. The report is shown in a frame without an origin, whose inline scripts are the
report's own, known by their digests: a name in a model cannot become a script.

Example:
    >>> "unsafe-inline" in policy().split("style-src")[0]
    False
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache

from openneutron.report.html.page import page_script
from openneutron.report.html.pair import pair_script


@cache
def policy(*, webassembly: bool = False) -> str:
    """Return the policy; with `webassembly` scripts may compile it, as Pyodide does."""
    scripts = ["'self'", *(f"'sha256-{_digest(text)}'" for text in (page_script(), pair_script()))]
    if webassembly:
        scripts.append("'wasm-unsafe-eval'")
    return "; ".join(
        (
            "default-src 'none'", f"script-src {' '.join(scripts)}", "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:", "media-src 'self' blob:", "connect-src 'self'", "worker-src 'self'",
            "frame-src 'self' blob:", "base-uri 'none'", "form-action 'none'",
        )
    )  # fmt: skip


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
