"""Patterns that exporters write, put back together."""

from __future__ import annotations

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
