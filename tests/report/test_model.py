from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from openneutron.errors import FormatError, OpenNeutronError
from openneutron.report.model import from_json, to_json
from tests.report.samples import report


def test_json_gives_back_the_same_report() -> None:
    assert from_json(to_json(report())) == report()


def test_totals_have_the_documented_names() -> None:
    documented = {
        "macs", "cycles", "milliseconds", "peak_bytes", "scratch_bytes", "weight_bytes", "microcode_bytes",
        "operators_total", "operators_converted",
    }  # fmt: skip
    assert documented <= set(json.loads(to_json(report()))["totals"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no JSON"),
        ("[]", "report version 'list'"),
        ('{"version": 99}', "report version 99"),
        ('{"version": 1, "colour": 3}', "unexpected \\['colour'\\] in Report"),
        ('{"version": 1, "target": 3}', "expected str, found 3"),
        ('{"version": 1, "totals": {"macs": "many"}}', "expected int, found 'many'"),
    ],
    ids=["cut off", "a list", "another version", "unknown field", "wrong type", "wrong type inside"],
)
def test_a_wrong_report_is_refused_with_its_name(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=f"old.json: {message}"):
        from_json(text, where="old.json")


def test_a_report_shows_itself_in_text_terminal_and_notebook() -> None:
    from rich.console import Console

    made = report()
    assert repr(made).startswith("<Report small[1].pt for imxrt700") and "250 cycles" in repr(made)
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(made)
    text = console.export_text()
    assert "Kernels by cycles" in text and "Left on the CPU" in text
    assert "<table>" in made._repr_html_()


def test_a_report_is_saved_as_page_or_data(tmp_path: Path) -> None:
    made = report()
    made.save(tmp_path / "r.json")
    assert from_json((tmp_path / "r.json").read_text()) == made
    made.save(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    with pytest.raises(OpenNeutronError, match=r"must end in \.html or \.json"):
        made.save(tmp_path / "r.pdf")
