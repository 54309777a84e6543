from __future__ import annotations

from openneutron.report.facts import Counts, node_counts
from openneutron.report.html.graph_view import graph_of, module_path
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
    found = graph_of(report)
    assert [(box.label, box.engine, box.cycles) for box in found.boxes] == [
        ("CONV_2D", "npu", 0),
        ("RELU", "npu", 70),
        ("SIN", "cpu", 0),
    ]
    assert found.boxes[0].shared == "b"
    assert [box.inputs for box in found.boxes] == [(), (0,), (1,)]
    assert [box.title for box in found.boxes] == ["a", "b", "c"]


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
    permute, linear, lost = graph_of(report).boxes
    assert (permute.cycles, permute.shared, linear.cycles, linear.label) == (0, "head.fc", 30, "addmm")
    assert lost.inputs == (1,)
    assert [box.title for box in (permute, linear, lost)] == ["permute_copy", "head.fc", "sin"]


def test_a_report_whose_edges_make_no_sense_still_draws() -> None:
    circular = tuple(Operator(at, "ADD", f"t{at}", True, inputs=(0, 1, 9)) for at in range(2))
    assert [box.inputs for box in graph_of(Report(operators=circular)).boxes] == [(), (0,)]
    assert graph_of(Report()).boxes == ()


def test_what_computes_constants_is_named_by_its_reader() -> None:
    report = Report(
        nodes=(
            NodeVerdict("steps", "aten.arange.start_step", False, constant=True),
            NodeVerdict("view", "aten.view_copy.default", False, inputs=("steps",), constant=True),
            NodeVerdict("sum", "aten.add.Tensor", True, inputs=("view",), module="layer.0.embed"),
            NodeVerdict("alone", "aten.full.default", False, constant=True),
        )
    )
    found = graph_of(report)
    assert [(box.name, box.inputs, box.constants) for box in found.boxes] == [
        ("sum", (), ("view_copy",)),
        ("alone", (), ()),
    ]
    assert (found.folded, found.constants) == (0, 2)
    assert found.boxes[0].path == ("layer", "0", "embed")


def test_paths_of_modules_tensors_and_onnx_nodes() -> None:
    assert module_path("features.3.conv") == ("features", "3", "conv")
    assert module_path("net/block_1/Relu;net/block_1/Conv2D") == ("net", "block_1", "Relu")
    assert module_path("/features/features.0/Conv") == ("features", "features.0", "Conv")
    assert module_path("") == ()


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
    found = graph_of(report)
    assert [box.name for box in found.boxes] == ["q_in", "conv", "sine", "conv_2", "dq_out"] and found.folded == 2
    assert found.boxes[2].converts == ("dequantize_per_tensor",) and found.boxes[2].inputs == (1,)
    assert [box.graph for box in found.boxes if box.engine == "npu"] == [0, 1] and found.boxes[1].module == "features.0"
    assert node_counts(report) == Counts(delegated=2, inner=5, border=2)
