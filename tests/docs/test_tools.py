"""The problem matchers of docs/tools.md match what the commands print."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import openneutron as on
from openneutron.cli.main import run
from openneutron.report.plain import report_text
from tests.docs.blocks import ROOT, blocks_of


def patterns() -> list[Any]:
    page = (ROOT / "docs" / "tools.md").read_text("utf-8")
    (block,) = (one for one in blocks_of(page) if one.language == "json")
    tasks = json.loads(block.text)["tasks"]
    return [matcher["pattern"] for task in tasks for matcher in task["problemMatcher"]]


def matched(pattern: Any, text: str) -> list[dict[str, str]]:
    found = (re.search(pattern["regexp"], line) for line in text.splitlines())
    groups = {name: group for name, group in pattern.items() if isinstance(group, int)}
    return [{name: one[group] for name, group in groups.items()} for one in found if one]


def test_errors_name_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.tflite").write_bytes(b"x")
    error, _ = patterns()
    for source in ("bad.tflite", "absent.tflite"):
        assert run(["compile", source]) == 2
        (found,) = matched(error, capsys.readouterr().err)
        assert found["file"] == source and len(found["message"]) > 10


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.atan2(torch.relu(x), x * x + 1)


def test_what_stays_on_the_cpu_has_its_line() -> None:
    inputs = (torch.rand(1, 4),)
    text = report_text(on.compile(Net(), inputs, calibration=[inputs], quality="plain").report)
    (found,) = (one for one in matched(patterns()[1], text) if "atan2" in one["code"])
    assert found["file"].endswith("test_tools.py") and "no lowering" in found["message"]
    line = (ROOT / "tests" / "docs" / "test_tools.py").read_text("utf-8").splitlines()[int(found["line"]) - 1]
    assert "torch.atan2" in line
