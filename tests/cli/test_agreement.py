"""Figures that several verbs print are one figure: calls, MACs, cycles, bytes of memory and of flash."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.board_networks import BOARD_NETWORKS
from openneutron.report.html.text import short, size
from tests import tiny
from tests.cli.conftest import Command

MODELS = {"convnet": tiny.convnet, "sandwich": tiny.sandwich, "resnet8": BOARD_NETWORKS["resnet8"]}


@pytest.fixture(params=[("convnet", "mcxn94x"), ("sandwich", "imx95"), ("resnet8", "imxrt700")], ids="-".join)
def compiled(request: pytest.FixtureRequest, folder: Path, command: Command) -> tuple[dict[str, Any], str]:
    """The report of a compile, and the target; source and result lie in the folder."""
    model, target = request.param
    (folder / "model.tflite").write_bytes(MODELS[model]())
    report = json.loads(command("compile", "model.tflite", "-o", "out.tflite", "--target", target, "--json").out)
    return report, target


def _json(command: Command, *arguments: str) -> Any:
    return json.loads(command(*arguments, "--json").out)


def test_every_verb_says_the_same(compiled: tuple[dict[str, Any], str], command: Command, folder: Path) -> None:
    report, target = compiled
    totals = report["totals"]
    calls = sum(kernel["calls"] for kernel in report["kernels"])
    assert calls > 0 and totals["macs"] == sum(kernel["macs"] for kernel in report["kernels"])

    inside = _json(command, "inspect", "out.tflite")["graphs"]
    assert sum(graph["calls"] for graph in inside) == sum(sum(g["kernels"].values()) for g in inside) == calls
    assert max(graph["scratch_bytes"] for graph in inside) == totals["scratch_bytes"]
    assert sum(graph["weights_bytes"] for graph in inside) == totals["weight_bytes"]
    assert sum(graph["microcode_bytes"] for graph in inside) == totals["microcode_bytes"]

    assert _json(command, "certify", "out.tflite", "model.tflite")["calls"] == calls

    of_source, of_file = (
        _json(command, "profile", "model.tflite", "--target", target),
        _json(command, "profile", "out.tflite"),
    )
    for found in (of_source, of_file):
        assert sum(kernel["calls"] for kernel in found["kernels"]) == calls
        for name in ("cycles", "milliseconds", "milliseconds_low", "milliseconds_high", "peak_bytes", "weight_bytes"):
            assert found["totals"][name] == pytest.approx(totals[name]), name
    assert of_source["totals"]["macs"] == totals["macs"]

    assert _json(command, "verify", "model.tflite", "--target", target)["cycles"] == totals["cycles"]
    assert _json(command, "run", "out.tflite")["cycles"] == totals["cycles"]

    twice = _json(command, "compare", "out.tflite", "model.tflite", "--target", target)
    for side in twice:
        assert side["kernel_calls"] == calls and side["cycles"] == totals["cycles"]
        for name in ("milliseconds", "milliseconds_low", "milliseconds_high"):
            assert side[name] == pytest.approx(totals[name]), name

    stock, ours = _json(command, "fits", "model.tflite", "--target", target)["rows"]
    assert ours["need"]["milliseconds"] == totals["milliseconds"]
    assert stock["need"]["milliseconds"] == report["stock"]["milliseconds"]

    assert command("report", "model.tflite", "--target", target, "-o", "page.html", "--no-what-if").code == 0
    page = (folder / "page.html").read_text()
    for figure in (f"{short(totals['macs'])} MACs", f"{totals['cycles']:,}", f"{size(totals['weight_bytes'])} weights"):
        assert figure in page, figure
    shown = re.findall(r'<td class="num" data-key="calls"[^>]*>([\d,]+)</td>', page)
    assert sum(int(one.replace(",", "")) for one in shown) == calls
