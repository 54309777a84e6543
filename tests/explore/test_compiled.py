"""A report as a drawing: modules, engines, and one overlay per figure that is known."""

from __future__ import annotations

from dataclasses import replace

from openneutron.explore.compiled import draw_report
from openneutron.report.model import CpuTime, Whole
from tests.report.samples import report


def test_nodes_have_modules_reasons_and_every_known_figure() -> None:
    first, second = report().kernels
    nodes = (replace(report().nodes[0], debug_handle=1, module="body.conv"), *report().nodes[1:])
    operators = (replace(report().operators[0], debug_handles=(1,)), *report().operators[1:])
    known = replace(
        report(), nodes=nodes, operators=operators, kernels=(replace(first, sqnr=31.5), second),
        whole=Whole("neutron", cpu_milliseconds=2.0, cpu=(CpuTime("a", "aten.sin", "portable", 2.0),)),
    )  # fmt: skip
    drawing = draw_report(known)
    conv, sin = drawing.nodes[:2]
    assert (conv.namespace, conv.attributes["kernel"]) == ("body/conv", "conv2d")
    assert sin.attributes["why"] == "operator sin has no kernel" and sin.attributes["runs on"].startswith("CPU")
    values = {one.name: one.values for one in drawing.overlays}
    assert values["engine"] == {"0": "NPU", "1": "CPU", "2": "CPU", "3": "CPU"}
    assert (values["cycles"], values["SQNR dB"], values["CPU ms"]) == ({"0": 200.0}, {"0": 31.5}, {"1": 2.0})
    assert "estimate" in drawing.attributes
    assert "SQNR dB" not in {one.name for one in draw_report(report()).overlays}
