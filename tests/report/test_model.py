from __future__ import annotations

import json

import pytest

from openneutron.errors import FormatError
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
