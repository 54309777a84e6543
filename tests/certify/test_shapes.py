"""Shapes follow from inputs, constants and options; a file that declares another one is refused."""

from __future__ import annotations

from typing import Any

import pytest

from openneutron.certify.operators import Context
from openneutron.certify.read.litert import Tensor
from openneutron.certify.refused import Refused
from openneutron.certify.shapes import check_shapes, has_declared_sizes
from openneutron.certify.tags import fill_tags
from tests.certify.small import const, context, tensor

WINDOW = {"FilterHeight": 3, "FilterWidth": 2, "StrideH": 2, "StrideW": 1}
STEPS = {"StrideH": 2, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 2, "Padding": 1}
MASKS = dict.fromkeys(("Offset", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask", "BeginMask", "EndMask"), 0)
CASES: dict[str, tuple[str, list[Tensor | None], list[tuple[int, ...]], dict[str, Any]]] = {
    "same": ("RELU", [tensor((2, 3))], [(2, 3)], {}),
    "broadcast": ("ADD", [tensor((4, 1, 3)), tensor((2, 1))], [(4, 2, 3)], {}),
    "reshape by tensor": ("RESHAPE", [tensor((2, 6)), const([3, -1])], [(3, 4)], {}),
    "reshape by option": ("RESHAPE", [tensor((2, 6))], [(4, 3)], {"NewShape": (4, 3)}),
    "squeeze all": ("SQUEEZE", [tensor((1, 3, 1))], [(3,)], {"SqueezeDims": ()}),
    "squeeze one": ("SQUEEZE", [tensor((1, 3, 1))], [(1, 3)], {"SqueezeDims": (-1,)}),
    "expand": ("EXPAND_DIMS", [tensor((2, 3)), const([-1])], [(2, 3, 1)], {}),
    "transpose": ("TRANSPOSE", [tensor((2, 3, 4)), const([2, 0, 1])], [(4, 2, 3)], {}),
    "broadcast to": ("BROADCAST_TO", [tensor((1, 3)), const([2, 3])], [(2, 3)], {}),
    "tile": ("TILE", [tensor((2, 3)), const([2, 1])], [(4, 3)], {}),
    "pad": ("PAD", [tensor((2, 3)), const([1, 0, 2, 1], shape=(2, 2))], [(3, 6)], {}),
    "slice": ("SLICE", [tensor((4, 5)), const([1, 2]), const([2, -1])], [(2, 3)], {}),
    "strided slice": (
        "STRIDED_SLICE", [tensor((4, 5)), const([0, 1]), const([4, 5]), const([2, 2])], [(2, 2)], MASKS),
    "shrunk slice": (
        "STRIDED_SLICE", [tensor((4, 5)), const([1, 0]), const([2, 5]), const([1, 1])], [(5,)],
        MASKS | {"ShrinkAxisMask": 1}),
    "concatenation": ("CONCATENATION", [tensor((2, 3)), tensor((2, 1))], [(2, 4)], {"Axis": -1}),
    "pack": ("PACK", [tensor((2, 3)), tensor((2, 3))], [(2, 2, 3)], {"Axis": 1}),
    "unpack": ("UNPACK", [tensor((2, 3))], [(3,), (3,)], {"Axis": 0}),
    "split": ("SPLIT", [const([1]), tensor((2, 4))], [(2, 2), (2, 2)], {"NumSplits": 2}),
    "split by sizes": ("SPLIT_V", [tensor((5,)), const([1, -1]), const([0])], [(1,), (4,)], {}),
    "gather": ("GATHER", [tensor((4, 5)), const([0, 2, 2])], [(4, 3)], {"Axis": 1}),
    "mean": ("MEAN", [tensor((2, 3, 4)), const([1, -1])], [(2,)], {"KeepDims": False}),
    "sum": ("SUM", [tensor((2, 3)), const([0])], [(1, 3)], {"KeepDims": True}),
    "arg max": ("ARG_MAX", [tensor((2, 3)), const([1])], [(2,)], {}),
    "resize": ("RESIZE_BILINEAR", [tensor((1, 2, 2, 3)), const([4, 6])], [(1, 4, 6, 3)], {}),
    "convolution": ("CONV_2D", [tensor((1, 7, 7, 3)), tensor((5, 3, 2, 3))], [(1, 3, 5, 5)], STEPS),
    "depthwise": ("DEPTHWISE_CONV_2D", [tensor((1, 7, 7, 3)), tensor((1, 3, 2, 6))], [(1, 3, 5, 6)], STEPS),
    "pool same": ("MAX_POOL_2D", [tensor((1, 7, 7, 3))], [(1, 4, 7, 3)], WINDOW | {"Padding": 0}),
    "fully connected": ("FULLY_CONNECTED", [tensor((2, 3, 4)), tensor((5, 4))], [(6, 5)], {}),
    "kept dimensions": ("FULLY_CONNECTED", [tensor((2, 3, 4)), tensor((5, 4))], [(2, 3, 5)], {"KeepNumDims": True}),
    "product": ("BATCH_MATMUL", [tensor((2, 3, 4)), tensor((1, 5, 4))], [(2, 3, 5)], {"AdjY": True}),
    "space to depth": ("SPACE_TO_DEPTH", [tensor((1, 4, 4, 2))], [(1, 2, 2, 8)], {"BlockSize": 2}),
    "depth to space": ("DEPTH_TO_SPACE", [tensor((1, 2, 2, 8))], [(1, 4, 4, 2)], {"BlockSize": 2}),
    "space to batch": (
        "SPACE_TO_BATCH_ND", [tensor((1, 3, 4)), const([2]), const([0, 1], shape=(1, 2))], [(2, 2, 4)], {}),
    "batch to space": (
        "BATCH_TO_SPACE_ND", [tensor((2, 2, 4)), const([2]), const([0, 1], shape=(1, 2))], [(1, 3, 4)], {}),
    "top k": ("TOPK_V2", [tensor((2, 5)), const([3])], [(2, 3), (2, 3)], {}),
    "shape": ("SHAPE", [tensor((2, 5))], [(2,)], {}),
    "one hot": ("ONE_HOT", [tensor((2,), "INT32", 0), const([4])], [(2, 4)], {"Axis": -1}),
}  # fmt: skip


def case(name: str, extra: int = 0) -> Context:
    code, inputs, shapes, options = CASES[name]
    return context(code, inputs, *(tensor((shape[0] + extra, *shape[1:])) for shape in shapes), **options)


@pytest.mark.parametrize("name", CASES)
def test_the_shape_that_follows_is_accepted_and_another_refused(name: str) -> None:
    assert check_shapes(case(name))
    with pytest.raises(Refused, match="is declared"):
        check_shapes(case(name, extra=1))


def test_operators_without_a_rule_or_known_sizes_are_left_open() -> None:
    assert not check_shapes(context("CUSTOM", [tensor((2,))], tensor((3,))))
    assert not check_shapes(context("RESHAPE", [tensor((4,)), tensor((2,), "INT32", 0)], tensor((2, 2))))
    assert not check_shapes(context("RELU", [tensor((2, 3))], tensor((0, 3))))
    assert not check_shapes(context("ADD", [tensor((2, 3)), tensor((2, 4))], tensor((2, 3)))), "no such broadcast"


def test_a_reshape_to_another_number_of_elements_has_no_shape() -> None:
    assert not check_shapes(context("RESHAPE", [tensor((2, 6)), const([5, 2])], tensor((5, 2))))


@pytest.mark.parametrize(
    ("code", "made"), [("BROADCAST_TO", (2, 3)), ("TRANSPOSE", (3, 2)), ("TILE", (4, 9)), ("PAD", (2, 8))]
)
def test_sizes_in_a_tensor_of_another_rank_have_no_shape(code: str, made: tuple[int, ...]) -> None:
    """LiteRT refuses such a file, so it does not compute what its source does."""
    numbers = {"BROADCAST_TO": [2, 3], "TRANSPOSE": [1, 0], "TILE": [2, 3], "PAD": [0, 0, 2, 3]}[code]
    right = (2, 2) if code == "PAD" else (len(numbers),)
    assert check_shapes(context(code, [tensor((2, 3)), const(numbers, shape=right)], tensor(made)))
    assert not check_shapes(context(code, [tensor((2, 3)), const(numbers, shape=(1, *right))], tensor(made)))


def test_a_tensor_of_one_tag_has_no_known_size() -> None:
    made = context("RELU", [tensor((2, 3))], tensor((2, 3)))
    assert has_declared_sizes(made)
    made.values[0] = fill_tags(7, 1)
    assert not has_declared_sizes(made) and not check_shapes(made)
