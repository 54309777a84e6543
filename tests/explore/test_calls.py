"""Edges between kernels, found in the bytes they write and read, are those of the model."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import openneutron as on
from benchmarks.board_networks import BOARD_NETWORKS
from openneutron.explore import calls
from openneutron.explore.drawing import Drawing
from openneutron.explore.files import drawings_of
from openneutron.litert.read import read_model
from openneutron.report.model import Report
from tests import tiny


def edges(drawing: Drawing) -> Mapping[str, set[str]]:
    return {node.id: {edge.source for edge in node.edges} for node in drawing.nodes}


def wanted(model: bytes, report: Report) -> Mapping[str, set[str]]:
    """The kernels that each kernel reads, by the operators that each of them computes."""
    graph = read_model(model).main
    producers = graph.producers()
    owners: dict[int, set[int]] = {}
    for kernel in report.kernels:
        for op in kernel.operators:
            owners.setdefault(op, set()).add(kernel.node)
    found = {}
    for kernel in report.kernels:
        read = {tensor for op in kernel.operators for tensor in graph.operators[op].inputs}
        makers = {node for tensor in read for node in owners.get(producers.get(tensor, -1), ())}
        found[str(kernel.node)] = {str(one) for one in makers - {kernel.node}}
    return found


@pytest.mark.parametrize("target", ["imxrt700", "mcxn94x", "imx95"])
@pytest.mark.parametrize("network", ["resnet8", "unpu_nas"])
def test_edges_cycles_and_layers_are_those_of_the_compile(network: str, target: str) -> None:
    model = BOARD_NETWORKS[network]()
    program = on.compile(model, target=target, name=network)
    main, drawing = drawings_of(program.tflite, network, program.report)
    found, known = edges(drawing), wanted(model, program.report)
    assert {node: {one for one in found[node] if one.isdigit()} for node in known} == known
    assert any("input 0" in sources for sources in found.values()) and found["output 0"]
    cycles = {one.name: one.values for one in drawing.overlays}["cycles"]
    assert sum(float(value) for value in cycles.values()) == sum(one.cycles for one in program.report.kernels)
    assert {one.name: one.values for one in main.overlays}["cycles"] == {"operator 0": sum(map(float, cycles.values()))}
    layers = {kernel.layer for kernel in program.report.kernels}
    assert {node.attributes["layer"] for node in drawing.nodes if "layer" in node.attributes} == layers


def test_calls_have_buffers_addresses_and_parameters() -> None:
    _, drawing = drawings_of(on.compile(tiny.convnet()).tflite, "convnet.tflite")
    conv = next(node for node in drawing.nodes if node.label == "conv2d")
    assert conv.attributes["input"] == "input0+0, 1×8×8×3 int8"
    assert conv.attributes["weights"].startswith("weights+0") and conv.attributes["stride_h"] == "1"
    assert conv.outputs[0]["address"].startswith("scratch+") and "layer" not in conv.attributes


def test_a_program_too_long_to_follow_says_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model = on.compile(BOARD_NETWORKS["resnet8"](), optimize="max").tflite
    whole = drawings_of(model, "m")[1]
    monkeypatch.setattr(calls, "MOST_STEPS", 4)
    short = drawings_of(model, "m")[1]
    assert "left out" in short.attributes["edges and cycles"] and "edges and cycles" not in whole.attributes
    assert [node.id for node in short.nodes] == [node.id for node in whole.nodes]
    assert not any(edges(short).values()) and [one.name for one in short.overlays] == ["output bytes"]
