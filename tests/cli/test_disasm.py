from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Command


def test_every_kernel_call_is_a_line_with_its_parameters(command: Command, folder: Path) -> None:
    assert command("compile", "convnet.tflite", "-o", "out.tflite").code == 0
    text = command("disasm", "out.tflite").out
    assert text.startswith("; out.tflite, operator 0\n; target imxrt700, array 1x8x8")
    for kernel in ("conv2d", "max_pool2d", "fully_connected", "softmax"):
        assert f"{kernel} node" in text
    assert "kernel_h=3, kernel_w=3" in text
    assert text.endswith("END\n")


def test_each_graph_of_a_model_is_printed(command: Command, folder: Path) -> None:
    assert command("compile", "sandwich.tflite", "-o", "out.tflite").code == 0
    text = command("disasm", "out.tflite").out
    assert [line for line in text.splitlines() if "operator" in line] == [
        "; out.tflite, operator 0",
        "; out.tflite, operator 4",
    ]
    found = json.loads(command("disasm", "out.tflite", "--json").out)
    assert [graph["where"] for graph in found] == ["out.tflite, operator 0", "out.tflite, operator 4"]
    assert all(graph["lines"][-1].endswith("END") for graph in found)


def test_a_model_without_graphs_says_what_to_do(refused: Callable[..., str], folder: Path) -> None:
    assert "the file holds no NeutronGraph. Hint: compile it" in refused("disasm", "convnet.tflite")
