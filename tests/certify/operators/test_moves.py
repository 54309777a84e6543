"""Operators that move bytes give the tags of their inputs in the order that numpy gives the bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from openneutron.certify.read.litert import Tensor
from openneutron.certify.tags import constant, value_of
from tests.certify.small import apply_rule, const, tensor

X = np.arange(24, dtype=np.int8)
Array = Any
MASKS = dict.fromkeys(("Offset", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask", "BeginMask", "EndMask"), 0)


def known(*shape: int) -> Tensor:
    return const(X[: int(np.prod(shape))].tobytes(), "INT8", shape, scale=0.5, zero=3)


CASES: dict[str, tuple[str, list[Tensor], dict[str, Any], Callable[[], Array]]] = {
    "reshape": ("RESHAPE", [known(2, 12), const([4, 6])], {}, lambda: X.reshape(4, 6)),
    "transpose": (
        "TRANSPOSE", [known(2, 3, 4), const([2, 0, 1])], {}, lambda: X.reshape(2, 3, 4).transpose(2, 0, 1)),
    "slice": ("SLICE", [known(4, 6), const([1, 2]), const([2, -1])], {}, lambda: X.reshape(4, 6)[1:3, 2:]),
    "strided slice": (
        "STRIDED_SLICE", [known(4, 6), const([3, 1]), const([-9, 6]), const([-2, 2])], MASKS,
        lambda: X.reshape(4, 6)[3::-2, 1:6:2]),
    "shrunk slice": (
        "STRIDED_SLICE", [known(4, 6), const([-1, 0]), const([0, 0]), const([1, 1])],
        MASKS | {"ShrinkAxisMask": 1, "EndMask": 2}, lambda: X.reshape(4, 6)[-1]),
    "new axis": (
        "STRIDED_SLICE", [known(4, 6), const([0, 1]), const([0, 3]), const([1, 1])], MASKS | {"NewAxisMask": 1},
        lambda: X.reshape(4, 6)[None, 1:3]),
    "pad with the zero point": (
        "PAD", [known(2, 3), const([1, 0, 0, 2], shape=(2, 2))], {},
        lambda: np.pad(X[:6].reshape(2, 3), ((1, 0), (0, 2)), constant_values=3)),
    "pad with a value": (
        "PADV2", [known(2, 3), const([0, 1, 1, 0], shape=(2, 2)), const(b"\x07", "INT8")], {},
        lambda: np.pad(X[:6].reshape(2, 3), ((0, 1), (1, 0)), constant_values=7)),
    "reflect": (
        "MIRROR_PAD", [known(3, 4), const([2, 1, 0, 3], shape=(2, 2))], {"Mode": 0},
        lambda: np.pad(X[:12].reshape(3, 4), ((2, 1), (0, 3)), mode="reflect")),
    "symmetric": (
        "MIRROR_PAD", [known(3, 4), const([2, 1, 0, 3], shape=(2, 2))], {"Mode": 1},
        lambda: np.pad(X[:12].reshape(3, 4), ((2, 1), (0, 3)), mode="symmetric")),
    "concatenation": (
        "CONCATENATION", [known(2, 3), known(2, 2)], {"Axis": 1},
        lambda: np.concatenate([X[:6].reshape(2, 3), X[:4].reshape(2, 2)], 1)),
    "pack": ("PACK", [known(2, 3), known(2, 3)], {"Axis": 1, "ValuesCount": 2},
             lambda: np.stack([X[:6].reshape(2, 3)] * 2, 1)),
    "tile": ("TILE", [known(2, 3), const([2, 2])], {}, lambda: np.tile(X[:6].reshape(2, 3), (2, 2))),
    "broadcast to": (
        "BROADCAST_TO", [known(2, 1), const([2, 3])], {}, lambda: np.broadcast_to(X[:2].reshape(2, 1), (2, 3))),
    "gather": ("GATHER", [known(3, 4), const([2, 0])], {"Axis": 1}, lambda: X[:12].reshape(3, 4)[:, [2, 0]]),
    "gather by coordinates": (
        "GATHER_ND", [known(3, 4), const([2, 0, 1, 3], shape=(2, 2))], {}, lambda: X[:12].reshape(3, 4)[[2, 1], [0, 3]]),
    "space to depth": (
        "SPACE_TO_DEPTH", [known(1, 2, 4, 2)], {"BlockSize": 2},
        lambda: X[:16].reshape(1, 1, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 1, 2, 8)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_known_bytes_end_where_numpy_puts_them(name: str) -> None:
    code, inputs, options, wanted = CASES[name]
    made = apply_rule(code, inputs, tensor(wanted().shape, zero=3), **options)
    assert made is not None and value_of(made[0]) == wanted().astype(np.int8).tobytes()


def test_parts_of_a_split_are_its_bytes() -> None:
    made = apply_rule("SPLIT", [const([1]), known(2, 4)], tensor((2, 2)), tensor((2, 2)), NumSplits=2)
    assert made is not None
    assert [list(part) for part in made] == [[0, 1, 4, 5], [2, 3, 6, 7]]


@pytest.mark.parametrize(
    ("code", "inputs", "shape"),
    [
        ("TRANSPOSE", [known(2, 3), const([0, 0])], (2, 3)),
        ("SLICE", [known(4, 6), const([3, 0]), const([2, 6])], (2, 6)),
        ("PAD", [known(2, 3), const([-1, 0, 0, 0], shape=(2, 2))], (1, 3)),
        ("MIRROR_PAD", [known(2, 3), const([2, 0, 0, 0], shape=(2, 2))], (4, 3)),
        ("TRANSPOSE", [known(2, 3), tensor((2,), "INT32", 0)], (3, 2)),
    ],
    ids=["an axis twice", "a box outside", "a negative frame", "a frame wider than the tensor", "an order not known"],
)
def test_forms_that_litert_does_not_run_have_no_rule(code: str, inputs: list[Tensor], shape: tuple[int, ...]) -> None:
    assert apply_rule(code, inputs, tensor(shape)) is None


def test_elements_of_two_bytes_stay_together() -> None:
    wide = const([1, 2, 3, 4, 5, 6], "INT16", (2, 3), scale=0.5)
    made = apply_rule("TRANSPOSE", [wide, const([1, 0])], tensor((3, 2), "INT16"))
    assert made == [constant(np.array([1, 4, 2, 5, 3, 6], np.int16).tobytes())]
