"""Each pass: before and after, and the model computes what it did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from openneutron.errors import OptionError
from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType, Model
from openneutron.litert.passes.run_passes import PASSES, run_passes
from openneutron.litert.write import write_model
from tests.golden import reference

SCALE = {"scale": 0.5, "zero_point": 3}


def transpose(g: GraphBuilder, source: int, order: list[int]) -> int:
    shape = [g.graph.tensors[source].shape[axis] for axis in order]
    made = g.tensor(f"t{len(g.graph.tensors)}", shape, DType.INT8, **SCALE)
    g.op(
        "TRANSPOSE", [source, g.tensor(f"p{made}", (len(order),), DType.INT32, data=np.array(order, np.int32))], [made]
    )
    return made


def relu(g: GraphBuilder, source: int) -> int:
    made = g.tensor(f"r{len(g.graph.tensors)}", g.graph.tensors[source].shape, DType.INT8, **SCALE)
    g.op("RELU", [source], [made])
    return made


def image(g: GraphBuilder) -> int:
    return g.tensor("x", (2, 3, 4, 5), DType.INT8, **SCALE)


def cancelling() -> Model:
    g = GraphBuilder()
    x = image(g)
    return g.finish([x], [relu(g, transpose(g, transpose(g, x, [0, 3, 1, 2]), [0, 2, 3, 1]))])


def joining() -> Model:
    g = GraphBuilder()
    x = image(g)
    first = transpose(g, x, [0, 3, 1, 2])
    return g.finish([x], [relu(g, first), transpose(g, first, [1, 0, 3, 2])])


def flattened(shared: bool = False) -> Model:
    g = GraphBuilder()
    x = image(g)
    moved = transpose(g, x, [0, 3, 1, 2])
    flat = g.tensor("flat", (2, 60), DType.INT8, **SCALE)
    g.op("RESHAPE", [moved, g.tensor("s", (2,), DType.INT32, data=np.array([2, 60], np.int32))], [flat])
    weights = np.random.default_rng(0).integers(-127, 128, (4, 60))
    w = g.tensor("w", (4, 60), DType.INT8, scale=0.01, zero_point=0, data=weights)
    y = g.tensor("y", (2, 4), DType.INT8, scale=2.0, zero_point=0)
    g.op("FULLY_CONNECTED", [flat, w, -1], [y])
    return g.finish([x], [y, relu(g, flat)] if shared else [y])


def requantized() -> Model:
    g = GraphBuilder()
    x = image(g)
    same = g.tensor("same", (2, 3, 4, 5), DType.INT8, **SCALE)
    other = g.tensor("other", (2, 3, 4, 5), DType.INT8, scale=0.25, zero_point=0)
    g.op("QUANTIZE", [x], [same])
    g.op("QUANTIZE", [same], [other])
    return g.finish([x], [other])


def unused() -> Model:
    g = GraphBuilder()
    x = image(g)
    relu(g, transpose(g, x, [1, 0, 2, 3]))
    return g.finish([x], [relu(g, x)])


CASES: dict[str, tuple[Any, str, list[str]]] = {
    "transposes that cancel": (cancelling, "fuse_transposes", ["RELU"]),
    "transposes that join": (joining, "fuse_transposes", ["TRANSPOSE", "RELU", "TRANSPOSE"]),
    "flatten": (flattened, "permute_fc_weights", ["RESHAPE", "FULLY_CONNECTED"]),
    "flatten with another reader": (
        lambda: flattened(shared=True),
        "",
        ["TRANSPOSE", "RESHAPE", "FULLY_CONNECTED", "RELU"],
    ),
    "requantize to the same": (requantized, "drop_requantize", ["QUANTIZE"]),
    "nobody reads it": (unused, "prune_graph", ["RELU"]),
}


@pytest.mark.parametrize("name", CASES)
def test_before_and_after(name: str) -> None:
    make, changed, codes = CASES[name]
    model = make()
    x = np.random.default_rng(1).integers(-128, 128, (2, 3, 4, 5)).astype(np.int8)
    before = reference(write_model(model), [x])
    counts = run_passes(model)
    assert [op.code for op in model.main.operators] == codes
    assert all((counts[one] > 0) == (one == changed) for one in PASSES if one != "prune_graph")
    for want, got in zip(before, reference(write_model(model), [x]), strict=True):
        np.testing.assert_array_equal(want, got)


def test_a_pass_can_be_switched_off() -> None:
    model = cancelling()
    counts = run_passes(model, off=("fuse_transposes",))
    assert "fuse_transposes" not in counts and [op.code for op in model.main.operators].count("TRANSPOSE") == 2
    with pytest.raises(OptionError, match="cannot be switched off"):
        run_passes(model, off=("prune_graph",))
