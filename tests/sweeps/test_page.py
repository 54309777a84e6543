from __future__ import annotations

import json
import re
from pathlib import Path

from openneutron.sweeps.page import page
from openneutron.sweeps.results import Sweep


def _data(text: str) -> dict[str, object]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


def test_the_page_has_every_row_and_needs_no_network() -> None:
    rows = tuple({"model": f"m{at}", "target": "a", "status": "ok", "open_ms": at / 7, "key": "k"} for at in range(5))
    text = page(Sweep(rows, Path(), ("target",)))
    data = _data(text)
    assert data["rows"][3] == ["m3", "a", "ok", 3 / 7] and data["filters"] == ["model", "target", "status"]
    assert not re.search(r"(src|href)=[\"']?(https?:)?//|@import|fetch\(", text)


def test_no_model_can_write_into_the_page() -> None:
    text = page(Sweep(({"model": "</script><script>alert(1)</script>", "status": "ok"},), Path()))
    assert "<script>alert" not in text and _data(text)["rows"] == [["</script><script>alert(1)</script>", "ok"]]


def test_ten_thousand_rows_stay_small() -> None:
    row = {
        "model": "mobilenet_v2",
        "status": "ok",
        **{f"figure_{at}": 123456.789012 for at in range(20)},
        "sha256": "0" * 64,
    }
    rows = tuple(
        {**row, "command": f"openneutron compile mobilenet_v2 --target imxrt700 --fit {at}"} for at in range(10_000)
    )
    assert len(page(Sweep(rows, Path()))) < 15e6
