"""A few hundred bytes of ONNX may name tensors of any size: they are refused before they are made."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.errors import UnsupportedError
from openneutron.onnx import load
from tests.onnx.models import model, node

HUGE = 2**33
ONE = np.ones(1, np.float32)


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def added(*nodes: object, **stored: object) -> object:
    """What the nodes make as `c`, added to the input."""
    return model([*nodes, node("Add", ["x", "c"], ["y"])], {"x": [1]}, ["y"], stored)


HOSTILE = {
    "an input": model([node("Relu", ["x"], ["y"])], {"x": [HUGE]}, ["y"]),
    "ConstantOfShape": added(node("ConstantOfShape", ["s"], ["c"]), s=numbers(2**40)),
    "Expand": added(node("Expand", ["k", "s"], ["c"]), k=ONE, s=numbers(HUGE)),
    "Tile": added(node("Tile", ["k", "s"], ["c"]), k=ONE, s=numbers(HUGE)),
    "Range": added(node("Range", ["a", "b", "a"], ["c"]), a=np.float32(1), b=np.float32(HUGE)),
    "Pad": model([node("Pad", ["x", "s"], ["y"], mode="edge")], {"x": [4]}, ["y"], {"s": numbers(0, HUGE)}),
    "DFT": model([node("DFT", ["x"], ["y"], axis=1)], {"x": [1, 2**16, 1]}, ["y"], opset=19),
    "MelWeightMatrix": added(
        node("MelWeightMatrix", ["n", "n", "n", "a", "b"], ["c"]),
        n=np.int64(2**20), a=np.float32(0), b=np.float32(4000),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=r"m\.onnx: .* Hint: (no such tensor fits the chip|give smaller sizes)"):
        load(HOSTILE[name].SerializeToString(), name="m.onnx")
