from __future__ import annotations

from xml.etree import ElementTree

from openneutron.report.html.notebook import fragment
from openneutron.report.model import Report
from tests.report.samples import report


def test_the_fragment_is_well_formed_and_complete() -> None:
    page = ElementTree.fromstring(f"<div>{fragment(report())}</div>")
    captions = [caption.text for caption in page.iter("caption")]
    assert captions == ["small[1].pt for imxrt700 (open 0.1.0)", "Kernels by cycles", "Left on the CPU"]
    cells = [cell.text for cell in page.iter("td")]
    assert "250 cycles, 0.0008 ms on imxrt700, open schedule" in cells
    assert "aten.<cos>" in cells


def test_an_empty_report_has_only_its_summary() -> None:
    assert fragment(Report(target="imxrt700", converter="open")).count("<table>") == 1
