"""The report as HTML: a fragment for notebooks, and a self-contained page."""

from __future__ import annotations

from openneutron.report.html.notebook import fragment
from openneutron.report.html.page import page
from openneutron.report.html.pair import pair_page

__all__ = ["fragment", "page", "pair_page"]
