"""Patterns that exporters write, put back together: by the importer, or by the quantizer's recognition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from openneutron.executorch.quantize.passes import recognize
from openneutron.onnx.fuse import fuse
from tests.onnx.models import convnet, model, node
from tests.onnx.test_importer import imports_equal, operators


def test_a_product_and_a_sum_are_a_linear_layer() -> None:
    made = convnet()
    assert fuse(made.graph) == 1
    assert [one.op_type for one in made.graph.node][-1] == "Linear"


def recognised(made: Any, *shapes: tuple[int, ...]) -> list[str]:
    """The operators that the quantizer sees."""
    module = recognize(imports_equal(made, *shapes).program.module(), is_qat=False)
    return [str(one.target).split(".")[1] for one in module.graph.nodes if one.op == "call_function"]


ACTIVATIONS = {
    "silu": ("silu", [node("Sigmoid", ["x"], ["s"]), node("Mul", ["x", "s"], ["y"])]),
    "silu with a factor of one": (
        "silu",
        [node("Mul", ["x", "one"], ["m"]), node("Sigmoid", ["m"], ["s"]), node("Mul", ["x", "s"], ["y"])],
    ),
    "hard swish by a hard sigmoid": (
        "hardswish",
        [node("HardSigmoid", ["x"], ["s"], alpha=1 / 6, beta=0.5), node("Mul", ["s", "x"], ["y"])],
    ),
    "hard swish by a clipped sum": (
        "hardswish",
        [
            node("Add", ["x", "three"], ["a"]), node("Clip", ["a", "zero", "six"], ["c"]),
            node("Mul", ["x", "c"], ["m"]), node("Div", ["m", "six"], ["y"]),
        ],
    ),
    "gelu, halved last": (
        "gelu",
        [
            node("Div", ["x", "root"], ["d"]), node("Erf", ["d"], ["e"]), node("Add", ["e", "one"], ["a"]),
            node("Mul", ["x", "a"], ["m"]), node("Mul", ["m", "half"], ["y"]),
        ],
    ),
    "gelu, halved first": (
        "gelu",
        [
            node("Div", ["x", "root"], ["d"]), node("Erf", ["d"], ["e"]), node("Add", ["e", "one"], ["a"]),
            node("Mul", ["x", "half"], ["h"]), node("Mul", ["h", "a"], ["y"]),
        ],
    ),
}  # fmt: skip
NUMBERS = {"zero": 0.0, "half": 0.5, "one": 1.0, "root": 2**0.5, "three": 3.0, "six": 6.0}


@pytest.mark.parametrize("case", ACTIVATIONS)
def test_an_activation_written_out_is_recognised(case: str) -> None:
    wanted, nodes = ACTIVATIONS[case]
    read = {name for one in nodes for name in one.input}
    stored = {name: np.float32(number) for name, number in NUMBERS.items() if name in read}
    assert recognised(model(nodes, {"x": [2, 3]}, ["y"], stored), (2, 3)) == [wanted]


def test_a_sigmoid_that_something_else_reads_stays() -> None:
    made = model([node("Sigmoid", ["x"], ["s"]), node("Mul", ["x", "s"], ["y"])], {"x": [2, 3]}, ["y", "s"])
    assert recognised(made, (2, 3)) == ["sigmoid", "mul"]


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
    for axis in (-1, 2, 1):
        scale = {name: data if axis != 1 or data.ndim == 0 else data[:3, None] for name, data in stored.items()}
        found = recognised(model(layer_norm_nodes(axis), {"x": [2, 3, 5]}, ["y"], scale, opset=13), (2, 3, 5))
        assert "rsqrt" in found and not {"sqrt", "div", "pow"} & set(found)


def test_an_infinity_that_cannot_win_is_left_out() -> None:
    made = model([node("Relu", ["x"], ["r"]), node("Max", ["low", "r"], ["y"])], {"x": [2, 3]}, ["y"],
                 {"low": np.float32(-np.inf)})  # fmt: skip
    assert operators(imports_equal(made, (2, 3))) == ["relu"]
