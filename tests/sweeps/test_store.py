from __future__ import annotations

from pathlib import Path

from openneutron.sweeps.store import Store


def test_a_row_and_its_report_stay(tmp_path: Path) -> None:
    Store(tmp_path / "a").put("abcd" * 16, {"status": "ok"}, "<html>")
    store = Store(tmp_path / "a")
    assert store.get("abcd" * 16) == {"status": "ok"} and store.report("abcd" * 16).read_text() == "<html>"
    assert store.get("ef" * 32) is None


def test_what_a_broken_disk_left_is_not_a_row(tmp_path: Path) -> None:
    store = Store(tmp_path)
    key = "12" * 32
    store.put(key, {"status": "ok"})
    next((tmp_path / "store").rglob("*.json")).write_text('{"sta')
    assert store.get(key) is None
