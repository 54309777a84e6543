"""The CPU's time by node in both columns, longest first, under the names of layers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openneutron.report.cpu_time import describe, rows, sentence
from openneutron.report.facts import facts
from openneutron.report.html import page
from openneutron.report.model import CpuTime, Report, Stock, Whole, from_json, to_json
from tests.report.samples import report

GATE = CpuTime("aten_sigmoid_default_3", "aten.sigmoid.default", "portable", 3.0, "head.<gate>")
ENTRY = CpuTime("quantize_1", "quantized_decomposed.quantize_per_tensor.default", "portable", 0.5, "input x")
CALL = CpuTime("NeutronGraph 0", "call", "call", 0.25)
LEFT = CpuTime("net/resize", "RESIZE_BILINEAR", "litert", 4.0)
WHOLE = Whole(
    "neutron", npu_milliseconds=0.25, cpu_milliseconds=3.5, call_milliseconds=0.25, cpu=(ENTRY, GATE, CALL)
)  # fmt: skip


def program() -> Report:
    return replace(report(), whole=WHOLE, stock=Stock(operators_total=3, milliseconds=8.0, cpu=(ENTRY, GATE, LEFT)))


def test_both_columns_have_the_parts_they_have() -> None:
    found = [(row.name, row.stock, row.open, row.share) for row in rows(program())]
    assert found == [
        ("net/resize", 4.0, None, 0.0),
        ("head.<gate>", 3.0, 3.0, 0.75),
        ("input x", 0.5, 0.5, 0.125),
        ("NeutronGraph 0", None, 0.25, 0.0625),
    ]


def test_a_litert_file_has_the_times_of_nxps_converter() -> None:
    (only,) = rows(Report(stock=Stock(milliseconds=5.0, cpu=(LEFT,))))
    assert (only.stock, only.open, only.share, only.runs_in) == (4.0, None, 0.8, "LiteRT kernel")
    assert sentence(Report(stock=Stock(cpu=(LEFT,)))) == "4.000 ms RESIZE_BILINEAR of net/resize"


def test_a_line_names_the_longest_and_counts_the_rest() -> None:
    known = dict(facts(program()))["CPU"]
    assert known == (
        "3.000 ms sigmoid of head.<gate>, 0.500 ms quantize_per_tensor of input x, 0.250 ms call of NeutronGraph 0"
    )
    four = replace(program(), whole=replace(WHOLE, cpu=(*WHOLE.cpu, LEFT)))
    assert sentence(four).endswith("sigmoid of head.<gate>, 0.500 ms quantize_per_tensor of input x and 1 more")
    assert sentence(Report()) == ""


@pytest.mark.parametrize("module", ["", "head"])
def test_no_name_is_that_of_a_graphs_node(module: str) -> None:
    assert "default" not in describe(replace(GATE, module=module))


def test_the_page_has_a_table_of_them_and_a_saved_report_keeps_them() -> None:
    text = page(from_json(to_json(program())))
    assert text.count("<tr>", text.index('id="cpu-table"'), text.index('id="change"')) == 1 + len(rows(program()))
    assert "head.&lt;gate&gt;" in text and 'href="#cpu"' in text and "75.0 %" in text
    assert 'id="cpu"' not in page(report())
