from __future__ import annotations

import dataclasses

from openneutron.report.facts import Counts, node_counts
from openneutron.report.html.graph_view import drawing
from openneutron.report.model import Kernel, NodeVerdict, Operator, Report


def kernel(node: int, name: str, operators: tuple[int, ...], cycles: int) -> Kernel:
    return Kernel(node, 0, "conv2d", name, operators, (1, 4, 4, 8), 10, 1, cycles, cycles, 0, 0, 5)


def test_a_litert_file_shows_its_operators_with_their_edges() -> None:
    report = Report(
        operators=(
            Operator(0, "CONV_2D", "a", True, graph=0),
            Operator(1, "RELU", "b", True, graph=0, inputs=(0,)),
            Operator(2, "SIN", "c", False, "no kernel", "no_kernel", "use tanh", inputs=(1,)),
        ),
        kernels=(kernel(0, "b", (0, 1), 70),),
    )
    found = drawing(report)
    assert [(box.label, box.engine, box.cycles) for box in found.boxes] == [
        ("CONV_2D", "npu", 0),
        ("RELU", "npu", 70),
        ("SIN", "cpu", 0),
    ]
    assert found.boxes[0].shared == "b"
    assert [(a, b) for a, b, _ in found.layout.edges] == [(0, 1), (1, 2)]


def test_nodes_meet_their_kernels_through_debug_handles() -> None:
    report = Report(
        nodes=(
            NodeVerdict("p", "aten.permute_copy.default", True, debug_handle=7, partition=0),
            NodeVerdict("fc", "aten.addmm.default", True, debug_handle=7, partition=0, inputs=("p",), module="head.fc"),
            NodeVerdict("lost", "aten.sin.default", False, "float", inputs=("fc", "gone")),
        ),
        operators=(Operator(0, "FULLY_CONNECTED", "fc", True, graph=0, debug_handles=(7,)),),
        kernels=(kernel(0, "fc", (0,), 30),),
    )
    permute, linear, lost = drawing(report).boxes
    assert (permute.cycles, permute.shared, linear.cycles, linear.label) == (0, "head.fc", 30, "addmm")
    assert lost.inputs == (1,)


def test_a_report_whose_edges_make_no_sense_still_draws() -> None:
    circular = tuple(Operator(at, "ADD", f"t{at}", True, inputs=(0, 1, 9)) for at in range(2))
    assert len(drawing(Report(operators=circular)).layout.edges) == 1
    assert drawing(dataclasses.replace(Report())).boxes == ()


def test_inner_conversions_are_folded_and_graphs_are_framed() -> None:
    """conv → DQ → sin → Q → conv: two NeutronGraphs, and the sine reads the first through its conversion."""
    names = ("q_in", "conv", "dq", "sine", "q", "conv_2", "dq_out")
    kinds = ("quantize", "convolution", "dequantize", "sin", "quantize", "convolution", "dequantize")
    report = Report(
        nodes=tuple(
            NodeVerdict(name, f"x.{kind}_per_tensor.default" if "quantize" in kind else f"aten.{kind}.default",
                 kind == "convolution", partition={"conv": 0, "conv_2": 1}.get(name, -1), inputs=names[max(at - 1, 0) : at],
                 module="features.0" if name == "conv" else "")
            for at, (name, kind) in enumerate(zip(names, kinds, strict=True))
        )
    )  # fmt: skip
    found = drawing(report)
    assert [box.name for box in found.boxes] == ["q_in", "conv", "sine", "conv_2", "dq_out"] and found.folded == 2
    assert found.boxes[2].converts == ("dequantize_per_tensor (dq)",) and found.boxes[2].inputs == (1,)
    assert [part.label for part in found.parts] == ["graph 0, 1 node", "graph 1, 1 node"]
    assert found.parts[0].label_y < found.parts[0].corners[0][1] and found.boxes[1].module == "features.0"
    assert node_counts(report) == Counts(delegated=2, inner=5, border=2)
