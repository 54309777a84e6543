"""ONNX → exported program → NPU: equal to onnxruntime, with names that survive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper

import openneutron
from openneutron.errors import OpenNeutronError
from openneutron.onnx import load
from openneutron.report.facts import facts
from tests.onnx.models import convnet, model, node, run_reference


def imports_equal(made: Any, *shapes: tuple[int, ...], sizes: Any = None, tolerance: float = 1e-5) -> Any:
    """Import a model, and compare the program with onnxruntime on random inputs."""
    imported = load(made.SerializeToString(), sizes=sizes)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    names = [one.name for one in made.graph.input if one.name not in {two.name for two in made.graph.initializer}]
    expected = run_reference(made, dict(zip(names, arrays, strict=True)))
    results = imported.program.module()(*[torch.from_numpy(array) for array in arrays])
    for one, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), wanted, atol=tolerance, rtol=tolerance)
    return imported


def operators(imported: Any) -> list[str]:
    return [str(one.target).split(".")[1] for one in imported.program.graph.nodes if one.op == "call_function"]


def test_a_network_comes_out_as_pytorch_would_have_it() -> None:
    imported = imports_equal(convnet(), (1, 3, 16, 16))
    assert operators(imported) == [
        "conv2d", "relu", "max_pool2d", "conv2d", "relu", "adaptive_avg_pool2d", "flatten", "linear",
    ]  # fmt: skip
    assert imported.inputs == ("image",) and imported.outputs == ("logits",) and not imported.quantized


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 17, 24])
def test_every_opset_of_the_range_is_read(opset: int) -> None:
    imports_equal(convnet(opset=opset), (1, 3, 16, 16))


def test_a_compiled_network_names_its_nodes_and_says_how_close_it_is_to_float() -> None:
    imported = load(convnet().SerializeToString())
    samples = [(torch.randn(1, 3, 16, 16),) for _ in range(4)]
    program = openneutron.compile(imported.program, imported.example_inputs, calibration=samples, optimize="fast")
    sources = {one.operator: one.source for one in program.report.nodes}
    assert sources["aten.convolution.default"] == "node `/conv2/Conv`"
    assert sources["aten.addmm.default"] == "node `/fc/Add`"
    assert len({one.partition for one in program.report.nodes if one.delegated}) == 1
    assert program.report.output_sqnr is not None and program.report.output_sqnr > 20 and not program.report.warnings
    assert "dB SQNR against float" in dict(facts(program.report))["accuracy"]


def test_shape_arithmetic_leaves_no_trace() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Unsqueeze", ["n", "axes"], ["n1"]),
        node("Concat", ["n1", "rest"], ["shape"], axis=0),
        node("Reshape", ["x", "shape"], ["y"]),
    ]
    stored = {"zero": np.int64(0), "axes": np.array([0]), "rest": np.array([-1])}
    made = model(nodes, {"x": ["n", 3, 4]}, ["y"], stored)
    assert operators(imports_equal(made, (2, 3, 4), sizes={"n": 2})) == ["reshape"]


def test_a_branch_is_chosen_and_a_loop_unrolled() -> None:
    body = helper.make_graph(
        [node("Add", ["a_in", "x"], ["a_out"]), node("Identity", ["c_in"], ["c_out"])], "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c_in", TensorProto.BOOL, []),
            helper.make_tensor_value_info("a_in", TensorProto.FLOAT, [2]),
        ],
        [
            helper.make_tensor_value_info("c_out", TensorProto.BOOL, []),
            helper.make_tensor_value_info("a_out", TensorProto.FLOAT, [2]),
        ],
    )  # fmt: skip
    branches = [
        helper.make_graph(
            [node(op, ["looped"], [f"r{op}"])],
            op,
            [],
            [helper.make_tensor_value_info(f"r{op}", TensorProto.FLOAT, [2])],
        )
        for op in ("Relu", "Neg")
    ]
    nodes = [
        node("Loop", ["count", "", "x"], ["looped"], body=body),
        node("If", ["yes"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    made = model(nodes, {"x": [2]}, ["y"], {"count": np.int64(3), "yes": np.array(True)})
    assert operators(imports_equal(made, (2,))) == ["add", "add", "add", "relu"]


def _decided_by_inputs(branches: tuple[Any, Any]) -> Any:
    nodes = [
        node("ReduceMax", ["x"], ["m"], keepdims=0),
        node("Less", ["m", "limit"], ["c"]),
        node("If", ["c"], ["y"], "/if", then_branch=branches[0], else_branch=branches[1]),
    ]
    return model(nodes, {"x": [4]}, ["y"], {"limit": np.float32(0.1)})


@pytest.mark.parametrize("largest", [0.05, 2.0])
def test_both_branches_are_computed_where_the_inputs_choose_one(largest: float) -> None:
    made = _decided_by_inputs((_branch("Relu"), _branch("Neg")))
    imported = load(made.SerializeToString())
    assert operators(imported) == ["amax", "lt", "relu", "neg", "where"]
    assert imported.notes == ("node `/if` (If): both branches are computed, because the inputs choose one",)
    x = np.array([-1.0, largest, 0.0, -3.0], np.float32)
    (wanted,), (y,) = run_reference(made, {"x": x}), imported.program.module()(torch.from_numpy(x))
    np.testing.assert_array_equal(y.detach().numpy(), wanted)


def test_a_branch_that_calibration_never_takes_has_its_range() -> None:
    made = _decided_by_inputs((_branch("Softplus"), _branch("Neg")))
    samples = [(torch.rand(4) * 0.8 + 0.2,) for _ in range(8)]
    program = openneutron.compile(made.SerializeToString(), calibration=samples, quality="plain")
    assert all(one.delegated for one in program.report.nodes if one.code != "border")
    x = torch.tensor([0.0, 0.05, 0.01, 0.02])
    assert torch.allclose(program.run(x)[0], torch.nn.functional.softplus(x), atol=0.02)


def test_sizes_that_a_network_does_not_take_are_told_in_one_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    nodes = [node("MaxPool", ["x"], ["p"], kernel_shape=[2], strides=[2]), node("Add", ["p", "w"], ["y"], "/add")]
    made = model(nodes, {"x": [1, 1, "n"]}, ["y"], {"w": np.zeros((1, 1, 4), np.float32)}).SerializeToString()
    with pytest.raises(OpenNeutronError, match=r"`/add`.*contradict each other.*give sizes that the network takes"):
        load(made, sizes={"n": 12})
    assert not capfd.readouterr().err


def test_a_float_is_true_unless_it_is_zero() -> None:
    nodes = [node("Cast", ["x"], ["c"], to=TensorProto.BOOL), node("Where", ["c", "x", "one"], ["y"])]
    imported = imports_equal(model(nodes, {"x": [4]}, ["y"], {"one": np.float32(1)}), (4,))
    assert operators(imported) == ["ne", "where"]


def test_initializers_may_be_inputs_too() -> None:
    made = convnet()
    made.graph.input.append(helper.make_tensor_value_info("w1", TensorProto.FLOAT, [8, 3, 3, 3]))
    assert load(made.SerializeToString()).inputs == ("image",)


def test_float16_is_computed_in_float32() -> None:
    weight = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float16)
    made = model(
        [node("MatMul", ["x", "w"], ["y"])], {"x": [1, 4]}, ["y"], {"w": weight},
        types={"x": TensorProto.FLOAT16, "y": TensorProto.FLOAT16},
    )  # fmt: skip
    imported = load(made.SerializeToString())
    x = torch.randn(1, 4)
    (y,) = imported.program.module()(x)
    np.testing.assert_allclose(y.detach().numpy(), x.numpy() @ weight.astype(np.float32), atol=1e-5)
    assert "FLOAT16" in imported.notes[0]


def _branch(op: str) -> Any:
    return helper.make_graph(
        [node(op, ["x"], [op])], op, [], [helper.make_tensor_value_info(op, TensorProto.FLOAT, [4])]
    )


def _endless() -> Any:
    values = {"i": (TensorProto.INT64, []), "c": (TensorProto.BOOL, []), "a": (TensorProto.FLOAT, [4])}
    made = {
        f"{name}_{side}": helper.make_tensor_value_info(f"{name}_{side}", *values[name])
        for name in "ica"
        for side in "io"
    }
    steps = [node("Identity", ["c_i"], ["c_o"]), node("Relu", ["a_i"], ["a_o"])]
    return helper.make_graph(steps, "body", [made["i_i"], made["c_i"], made["a_i"]], [made["c_o"], made["a_o"]])


def _counts_words() -> Any:
    numbers = {
        "max_gram_length": 1,
        "max_skip_count": 0,
        "min_gram_length": 1,
        "ngram_counts": [0],
        "ngram_indexes": [0],
    }
    return node("TfIdfVectorizer", ["x"], ["y"], "/t", mode="TF", **numbers)


REFUSED: dict[str, tuple[Any, str]] = {
    "a custom operator": (
        model(
            [node("Magic", ["x"], ["y"], "/m", domain="acme")], {"x": [1]}, ["y"],
            imports=[helper.make_opsetid("acme", 1)],
        ),
        "node `/m` .Magic.: operator Magic of domain 'acme' is a custom one",
    ),
    "an unknown operator": (
        model([_counts_words()], {"x": [1]}, ["y"], types={"x": TensorProto.INT64}),
        "node `/t` .TfIdfVectorizer.: operator TfIdfVectorizer is not imported",
    ),
    "shapes that contradict": (
        model([node("Add", ["x", "w"], ["y"], "/add")], {"x": [2, 3]}, ["y"], {"w": np.zeros((4, 5), np.float32)}),
        "node `/add` .Add.: its inputs and attributes contradict",
    ),
    "a size that depends on data": (
        model([node("NonZero", ["x"], ["y"], "/nz")], {"x": [4]}, ["y"], types={"y": TensorProto.INT64}),
        "node `/nz`.*computed from the model's inputs",
    ),
    "branches of other shapes that data chooses": (
        model(
            [
                node("ReduceMax", ["x"], ["m"], keepdims=0),
                node("Cast", ["m"], ["c"], to=TensorProto.BOOL),
                node("If", ["c"], ["y"], "/if", then_branch=_branch("Relu"), else_branch=_branch("ReduceMax")),
            ],
            {"x": [4]}, ["y"],
        ),
        r"node `/if` .If.: the inputs decide whether its result is torch.float32 of shape .4. or torch.float32 of shape .1.",
    ),
    "a loop that data ends": (
        model(
            [
                node("ReduceMax", ["x"], ["m"], keepdims=0),
                node("Cast", ["m"], ["c"], to=TensorProto.BOOL),
                node("Loop", ["", "c", "x"], ["y"], "/loop", body=_endless()),
            ],
            {"x": [4]}, ["y"],
        ),
        "node `/loop` .Loop.: its condition is computed from the model's inputs",
    ),
    "boxes that depend on data": (
        model(
            [node("NonMaxSuppression", ["x", "s"], ["y"], "/nms")], {"x": [1, 4, 4], "s": [1, 1, 4]}, ["y"],
            types={"y": TensorProto.INT64},
        ),
        "node `/nms`.*how many boxes it keeps depends on the data",
    ),
    "a constant": (
        model([node("Relu", ["w"], ["y"])], {"x": [1]}, ["y"], {"w": np.zeros(1, np.float32)}),
        "the whole model is a constant",
    ),
    "an enormous constant": (
        model(
            [node("ConstantOfShape", ["s"], ["c"], "/c"), node("Add", ["c", "x"], ["y"])], {"x": [1]}, ["y"],
            {"s": np.array([1 << 20, 1 << 20])},
        ),
        "node `/c`.*no such tensor fits the chip",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_imported_names_the_node(name: str) -> None:
    made, sentence = REFUSED[name]
    with pytest.raises(OpenNeutronError, match=sentence):
        load(made.SerializeToString(), name="model.onnx")


def test_a_long_model_becomes_as_many_calls() -> None:
    nodes = [node("Relu" if at % 2 else "Neg", [f"v{at}"], [f"v{at + 1}"]) for at in range(300)]
    assert len(operators(load(model(nodes, {"v0": [1, 8]}, ["v300"]).SerializeToString()))) == 300


def test_a_fourier_transform_is_a_product_with_constants() -> None:
    made = model([node("DFT", ["x"], ["y"], axis=1)], {"x": [1, 8, 1]}, ["y"], opset=19)
    imports_equal(made, (1, 8, 1))


def test_inputs_of_eight_bits_have_examples() -> None:
    made = model([node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], {"x": [4]}, ["y"], opset=21)
    made.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT8E4M3FN
    assert load(made.SerializeToString()).example_inputs[0].dtype == torch.float8_e4m3fn


@pytest.mark.parametrize("name", ["class", "self", "torch", "pytree", "x²", "notes_nodes", "入力"])
def test_names_may_be_words_of_python_or_none(name: str) -> None:
    """As the name of an input and of stored numbers, one after the other."""
    weight = np.eye(4, 3, dtype=np.float32)
    imports_equal(model([node("MatMul", [name, "w"], ["y"])], {name: [1, 4]}, ["y"], {"w": weight}), (1, 4))
    imports_equal(model([node("MatMul", ["x", name], ["y"])], {"x": [1, 4]}, ["y"], {name: weight}), (1, 4))


@pytest.mark.parametrize(
    "attributes", [{"keepdims": 0}, {"keepdims": 1}, {"axis": -1}, {"select_last_index": 1}], ids=str
)
def test_the_place_of_the_largest_drops_its_dimension_as_the_npu_does(attributes: dict[str, int]) -> None:
    places = {"types": {"y": TensorProto.INT64}}
    imported = imports_equal(
        model([node("ArgMax", ["x"], ["y"], **{"axis": 1, **attributes})], {"x": [2, 5, 4]}, ["y"], **places), (2, 5, 4)
    )
    (found,) = (one for one in imported.program.graph.nodes if "argmax" in str(one.target))
    assert len(found.args) == 2
