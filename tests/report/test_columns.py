from __future__ import annotations

from dataclasses import replace

from openneutron.report import columns
from openneutron.report.html import page
from openneutron.report.html.notebook import fragment
from openneutron.report.model import Stock
from openneutron.report.plain import report_text
from tests.report.samples import report as sample

STOCK = Stock(
    operators_total=9, operators_converted=7, graphs=1, kernel_calls=8, scratch_bytes=40_960, arena_bytes=44_768,
    weight_bytes=90_544, microcode_bytes=1_060, milliseconds=1.015, milliseconds_low=0.887, milliseconds_high=1.162,
    npu_milliseconds=1.0, cpu_milliseconds=0.015, left=("1 x SOFTMAX: it stays",),
)  # fmt: skip


def test_both_columns_carry_their_figures() -> None:
    rows = {label: (stock, ours) for label, stock, ours in columns.rows(replace(sample(), nodes=(), stock=STOCK))}
    assert rows["operators on the NPU"] == ("7 of 9 in 1 NeutronGraph", "2 of 3 in 1 NeutronGraph")
    assert rows["scratch"] == ("40,960 bytes", "1,000 bytes")
    assert rows["memory"] == ("44,768 bytes, kTensorArenaSize", "1,536 bytes, without an interpreter's")
    assert rows["latency"][0] == "1.015 ms, 0.887 to 1.162"


def test_without_a_stock_answer_there_are_no_columns() -> None:
    assert columns.rows(sample()) == []
    assert columns.WHICH not in report_text(sample())


def test_every_form_of_the_report_shows_them_and_says_which_one_a_board_sees() -> None:
    both = replace(sample(), stock=STOCK)
    for text in (report_text(both), fragment(both), page(both)):
        plain = text.replace("&#39;", "'").replace("&#x27;", "'")
        assert columns.WHICH in plain and columns.STOCK in plain and "44,768" in plain
