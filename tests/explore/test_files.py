"""Every kind of file that can be opened, ours and NXP's."""

from __future__ import annotations

import pytest
import torch

import openneutron as on
from openneutron.cli.inputs.blocks import blocks_of_file
from openneutron.errors import FormatError
from openneutron.explore.drawing import CPU, NPU
from openneutron.explore.files import ONLY_HEADER, drawings_of
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from tests import tiny
from tests.compat import nxp_file


def test_an_executorch_programs_delegates_open() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.ReLU())
    inputs = (torch.rand(1, 2, 6, 5),)
    program = on.compile(model, inputs, calibration=[inputs])
    outer, inner = drawings_of(program.pte, "net.pte", program.report)
    labels = [node.label for node in outer.nodes]
    assert labels == ["input 0", "quantize_per_tensor.out", "NeutronBackend", "dequantize_per_tensor.out", "output 0"]
    assert all(node.edges for node in outer.nodes[1:])
    delegate = outer.nodes[2]
    assert delegate.graphs == (inner.id,) and delegate.outputs[0]["address"].startswith("arena 1+")
    overlays = {one.name: one.values for one in outer.overlays}
    assert list(overlays["engine"].values()) == [CPU, NPU, CPU]
    assert overlays["cycles"] == {delegate.id: float(program.report.totals.cycles)}
    assert {node.attributes.get("layer") for node in inner.nodes} >= {"0"}


def test_of_nxps_microcode_only_the_header_is_shown() -> None:
    theirs = write_model(nxp_file.converted(read_model(tiny.convnet())))
    main, graph = drawings_of(theirs, "theirs.tflite")
    assert graph.attributes["note"] == ONLY_HEADER
    (body,) = (node for node in graph.nodes if node.id == "microcode")
    assert body.attributes["version word"] == f"0x{nxp_file.VERSION_WORD:08X}" and body.attributes["made by"] == "nxp"
    assert next(node for node in main.nodes if node.graphs).graphs == (graph.id,)


def test_microcode_alone_and_damaged_files() -> None:
    program = on.compile(tiny.convnet())
    (block,) = blocks_of_file(program.tflite, "out.tflite")
    assert [one.id for one in drawings_of(block.microcode, "microcode.bin")] == ["NeutronGraph 0"]
    with pytest.raises(FormatError, match=r"cut\.tflite"):
        drawings_of(program.tflite[: len(program.tflite) // 2], "cut.tflite")
