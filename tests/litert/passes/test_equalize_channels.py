"""Units of channels change weights and ranges, and nothing that the network computes."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from openneutron.litert import DType, Model, write_model
from openneutron.litert.build import GraphBuilder
from openneutron.litert.passes.channel_groups import channel_groups
from openneutron.litert.passes.equalize_channels import Balance, equalize_channels
from openneutron.quantize_litert.watch import Seen, Watched, add_seen
from openneutron.run.runner import LiteRtRunner

SIDE, WIDTH = 6, 4
IMAGES = [(np.random.default_rng(at).standard_normal((1, SIDE, SIDE, WIDTH)).astype(np.float32),) for at in range(3)]


def network(activation: str = "RELU") -> Model:
    """Two convolutions around a depthwise one, a residual sum, a pad of channels, a gate and a layer for the classes."""
    rng = np.random.default_rng(3)
    g = GraphBuilder()
    uneven = np.float32([0.01, 1.0, 30.0, 0.2])

    def weights(name: str, *shape: int) -> int:
        return g.tensor(name, shape, DType.FLOAT32, data=rng.standard_normal(shape).astype(np.float32))

    def made(name: str, *shape: int) -> int:
        return g.tensor(name, shape, DType.FLOAT32)

    window = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
    x = made("x", 1, SIDE, SIDE, WIDTH)
    first, deep, second, total = (made(name, 1, SIDE, SIDE, WIDTH) for name in ("first", "deep", "second", "total"))
    stretched = rng.standard_normal((WIDTH, 3, 3, WIDTH)).astype(np.float32) * uneven.reshape(-1, 1, 1, 1)
    w = g.tensor("w1", stretched.shape, DType.FLOAT32, data=stretched)
    g.op("CONV_2D", [x, w, weights("b1", WIDTH)], [first], fused_activation_function=activation, **window)
    g.op(
        "DEPTHWISE_CONV_2D",
        [first, weights("w2", 1, 3, 3, WIDTH), weights("b2", WIDTH)],
        [deep],
        depth_multiplier=1,
        **window,
    )
    g.op("CONV_2D", [deep, weights("w3", WIDTH, 1, 1, WIDTH), weights("b3", WIDTH)], [second], **window)
    g.op("ADD", [first, second], [total], fused_activation_function="RELU")
    padded, pooled, gate, gated = (
        made("padded", 1, SIDE, SIDE, 6),
        made("pooled", 1, 6),
        made("gate", 1, 6),
        made("gated", 1, 6),
    )
    edges = g.tensor("edges", (4, 2), DType.INT32, data=np.int32([[0, 0], [0, 0], [0, 0], [1, 1]]))
    g.op("PAD", [total, edges], [padded])
    g.op("MEAN", [padded, g.tensor("axes", (2,), DType.INT32, data=np.int32([1, 2]))], [pooled], keep_dims=False)
    g.op("LOGISTIC", [pooled], [gate])
    g.op("MUL", [gate, pooled], [gated])
    y = made("y", 1, 5)
    g.op("FULLY_CONNECTED", [gated, weights("w4", 5, 6), weights("b4", 5)], [y])
    return g.finish([x], [y])


def watch(data: bytes) -> dict[str, Seen]:
    seen: dict[str, Seen] = {}
    watched = Watched(data)
    for image in IMAGES:
        add_seen(seen, watched.run(image))
    return seen


@pytest.mark.parametrize("balance", [Balance(), Balance(1.0, 0.0)])
def test_the_network_computes_the_same_with_even_channels(balance: Balance) -> None:
    model = network()
    seen = watch(write_model(model))
    changed = copy.deepcopy(model)
    units = equalize_channels(changed.main, {name: one.peak for name, one in seen.items()}, balance)
    assert {"deep"} <= set(units) and not {"x", "y", "gate"} & set(units)
    data = write_model(changed)
    for image in IMAGES:
        (wanted,), (found,) = (
            LiteRtRunner(one).run(list(image)).outputs.values() for one in (write_model(model), data)
        )
        assert np.allclose(found, wanted, rtol=1e-4, atol=1e-4)
    after = watch(data)
    for name, unit in units.items():
        assert np.allclose(after[name].peak, seen[name].divide(unit).peak, rtol=1e-3, atol=1e-5), name

    def spread(found: np.ndarray) -> float:
        return float(found.max() / found.min())

    assert spread(after["deep"].peak) < spread(seen["deep"].peak) / 4


def test_a_limit_in_a_unit_of_its_own_fixes_channels() -> None:
    free, fixed = (channel_groups(network(activation).main) for activation in ("RELU", "RELU6"))
    names = {tensor.name: at for at, tensor in enumerate(free.graph.tensors)}
    assert fixed.is_fixed(names["first"]) and not fixed.is_fixed(names["deep"])
    # A logistic function reads the mean of all: the sum is fixed too, and what is added.
    assert free.is_fixed(names["padded"]) and free.is_fixed(names["total"]) and (free.of(names["first"]) == -1).all()


def test_a_constant_that_is_added_has_the_unit_of_the_sum() -> None:
    g = GraphBuilder()
    x, y, z, end = (g.tensor(name, (1, 2), DType.FLOAT32) for name in ("x", "y", "z", "end"))
    eye = np.eye(2, dtype=np.float32)
    g.op("FULLY_CONNECTED", [x, g.tensor("w", (2, 2), DType.FLOAT32, data=eye * [[100], [1]]), -1], [y])
    g.op("ADD", [y, g.tensor("more", (2,), DType.FLOAT32, data=np.float32([100, 1]))], [z])
    g.op("FULLY_CONNECTED", [z, g.tensor("v", (2, 2), DType.FLOAT32, data=eye), -1], [end])
    model = g.finish([x], [end])
    units = equalize_channels(model.main, {"y": np.array([100, 1]), "z": np.array([200, 2])}, Balance(1.0, 0.0))
    assert np.allclose(units["y"], [1, 0.01]) and np.allclose(units["z"], units["y"])
    more = next(tensor.data for tensor in model.main.tensors if tensor.name == "more")
    assert more is not None and np.allclose(more, [100, 100])
