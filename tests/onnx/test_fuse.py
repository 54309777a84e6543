"""Patterns that exporters write, put back together."""

from __future__ import annotations

from typing import Any

import numpy as np

from openneutron.onnx.fuse import fuse
from tests.onnx.models import convnet, model, node
from tests.onnx.test_importer import imports_equal, operators

ROOT = np.float32(2**0.5)


def test_a_product_and_a_sum_are_a_linear_layer() -> None:
    made = convnet()
    assert fuse(made.graph) == 1
    assert [one.op_type for one in made.graph.node][-1] == "Linear"


def test_a_sigmoid_and_a_product_are_silu() -> None:
    made = model([node("Sigmoid", ["x"], ["s"]), node("Mul", ["x", "s"], ["y"])], {"x": [2, 3]}, ["y"])
    assert operators(imports_equal(made, (2, 3))) == ["silu"]


def test_a_sigmoid_that_something_else_reads_stays() -> None:
    made = model([node("Sigmoid", ["x"], ["s"]), node("Mul", ["x", "s"], ["y"])], {"x": [2, 3]}, ["y", "s"])
    assert operators(imports_equal(made, (2, 3))) == ["sigmoid", "mul"]


def test_a_hard_sigmoid_and_a_product_are_hard_swish() -> None:
    nodes = [node("HardSigmoid", ["x"], ["s"], alpha=1 / 6, beta=0.5), node("Mul", ["s", "x"], ["y"])]
    assert operators(imports_equal(model(nodes, {"x": [2, 3]}, ["y"]), (2, 3))) == ["hardswish"]


def test_the_definition_of_gelu_is_gelu_in_any_order() -> None:
    first = [
        node("Div", ["x", "root"], ["d"]), node("Erf", ["d"], ["e"]), node("Add", ["e", "one"], ["a"]),
        node("Mul", ["x", "a"], ["m"]), node("Mul", ["m", "half"], ["y"]),
    ]  # fmt: skip
    second = [*first[:3], node("Mul", ["x", "half"], ["h"]), node("Mul", ["h", "a"], ["y"])]
    stored = {"root": ROOT, "one": np.float32(1), "half": np.float32(0.5)}
    for nodes in (first, second):
        made = model(nodes, {"x": [2, 3]}, ["y"], stored)
        assert operators(imports_equal(made, (2, 3))) == ["gelu"]


def test_a_sigmoid_with_a_factor_of_one_is_silu() -> None:
    nodes = [node("Mul", ["x", "one"], ["m"]), node("Sigmoid", ["m"], ["s"]), node("Mul", ["x", "s"], ["y"])]
    made = model(nodes, {"x": [2, 3]}, ["y"], {"one": np.ones(1, np.float32)})
    assert operators(imports_equal(made, (2, 3))) == ["silu"]


def test_a_clipped_sum_and_products_are_hard_swish() -> None:
    stored = {"three": np.float32(3), "zero": np.float32(0), "six": np.float32(6), "sixth": np.float32(1 / 6)}
    first = [
        node("Add", ["x", "three"], ["a"]), node("Clip", ["a", "zero", "six"], ["c"]), node("Mul", ["x", "c"], ["m"]),
    ]  # fmt: skip
    for last in (node("Div", ["m", "six"], ["y"]), node("Mul", ["sixth", "m"], ["y"])):
        assert operators(imports_equal(model([*first, last], {"x": [2, 3]}, ["y"], stored), (2, 3))) == ["hardswish"]
    upside_down = node("Div", ["six", "m"], ["y"])
    made = model([*first, upside_down], {"x": [2, 3]}, ["y"], stored)
    assert fuse(made.graph) == 0


def test_numbers_behind_a_convolution_go_into_it() -> None:
    rng = np.random.default_rng(0)
    stored = {
        "w": rng.normal(size=(4, 3, 3, 3)), "s": rng.normal(size=1), "t": rng.normal(size=(1, 4, 1, 1)),
        "row": rng.normal(size=6),
    }  # fmt: skip
    stored = {name: data.astype(np.float32) for name, data in stored.items()}
    nodes = [
        node("Conv", ["x", "w"], ["c"], "/conv", pads=[1, 1, 1, 1]), node("Mul", ["s", "c"], ["m"]),
        node("Add", ["m", "t"], ["y"]),
    ]  # fmt: skip
    made = model(nodes, {"x": [1, 3, 6, 6]}, ["y"], stored)
    assert operators(imports_equal(made, (1, 3, 6, 6))) == ["conv2d"]
    along_a_row = model([*nodes[:2], node("Add", ["m", "row"], ["y"])], {"x": [1, 3, 6, 6]}, ["y"], stored)
    assert operators(imports_equal(along_a_row, (1, 3, 6, 6))) == ["conv2d", "add"]


def layer_norm_nodes(axis: int) -> list[Any]:
    return [
        node("ReduceMean", ["x"], ["m"], axes=[axis]), node("Sub", ["x", "m"], ["d"]), node("Pow", ["d", "two"], ["p"]),
        node("ReduceMean", ["p"], ["v"], axes=[axis]), node("Add", ["v", "eps"], ["e"]), node("Sqrt", ["e"], ["r"]),
        node("Div", ["d", "r"], ["n"]), node("Mul", ["n", "w"], ["s"]), node("Add", ["s", "b"], ["y"]),
    ]  # fmt: skip


def test_the_definition_of_layer_norm_is_one() -> None:
    rng = np.random.default_rng(0)
    stored = {
        "two": np.float32(2), "eps": np.float32(1e-5), "w": rng.normal(size=5).astype(np.float32),
        "b": rng.normal(size=5).astype(np.float32),
    }  # fmt: skip
    for axis, wanted in ((-1, ["layer_norm"]), (2, ["layer_norm"])):
        made = model(layer_norm_nodes(axis), {"x": [2, 3, 5]}, ["y"], stored, opset=13)
        assert operators(imports_equal(made, (2, 3, 5))) == wanted
    other = model(layer_norm_nodes(1), {"x": [2, 3, 5]}, ["y"], stored, opset=13)
    assert "layer_norm" not in operators(imports_equal(other, (2, 3, 5)))


def test_an_infinity_that_cannot_win_is_left_out() -> None:
    made = model([node("Relu", ["x"], ["r"]), node("Max", ["low", "r"], ["y"])], {"x": [2, 3]}, ["y"],
                 {"low": np.float32(-np.inf)})  # fmt: skip
    assert operators(imports_equal(made, (2, 3))) == ["relu"]
