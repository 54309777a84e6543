"""The zoo's networks through `torch.onnx.export` and back: what runs where and what it costs stays as it was."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

import openneutron
from openneutron import zoo

SAMPLES = 4  # for calibration: neither placement nor cycles depend on them


def left_on_the_cpu(report: Any) -> Counter[str]:
    return Counter(node.operator for node in report.nodes if not node.delegated and node.code != "border")


def round_trip(name: str, folder: Path) -> tuple[Any, Any]:
    """The report straight from PyTorch, and the one from ONNX."""
    network = zoo.load(name)
    batches = network.calibration[:SAMPLES]
    path = folder / f"{name}.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.model.eval(), network.example_inputs, path, dynamo=True, external_data=False, verbose=False
        )
    straight = openneutron.compile(network.model, network.example_inputs, calibration=batches, optimize="fast")
    return straight.report, openneutron.compile(path, calibration=batches, optimize="fast").report


def check(name: str, folder: Path) -> None:
    straight, back = round_trip(name, folder)
    assert left_on_the_cpu(back) == left_on_the_cpu(straight)
    assert back.totals.neutron_graphs == straight.totals.neutron_graphs
    assert back.totals.cycles == pytest.approx(straight.totals.cycles, rel=0.02)


def test_a_network_of_the_zoo_comes_back_the_same(tmp_path: Path) -> None:
    check("ds_cnn", tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in zoo.names() if name != "ds_cnn"])
def test_every_network_of_the_zoo_comes_back_the_same(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)
