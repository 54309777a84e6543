from __future__ import annotations

import re

from openneutron.report.html import page, pair_page
from openneutron.report.model import Report
from openneutron.studio.policy import _digest, policy


def test_the_reports_own_scripts_are_allowed_and_no_other() -> None:
    report = Report(target="imxrt700", source="</script><script>alert(1)</script>")
    for text in (page(report), pair_page(report, report)):
        scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        assert len(scripts) == 1 and f"'sha256-{_digest(scripts[0])}'" in policy()
    assert "unsafe" not in policy().split("style-src")[0] and "wasm-unsafe-eval" in policy(webassembly=True)
