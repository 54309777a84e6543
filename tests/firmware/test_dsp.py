"""The DSP loops and the portable ones on shapes that have every kind of remainder, byte for byte the host's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from openneutron.litert import DType, GraphBuilder
from openneutron.litert.write import write_model
from tests.firmware import image
from tests.firmware.conftest import Build
from tests.firmware.models import Model

# Input channels, output channels, kernel, stride: below, at and beyond one block of 4 or 8 inputs and units.
CONVOLUTIONS = [(1, 1, 3, 1), (3, 8, 3, 2), (4, 5, 1, 1), (7, 9, 2, 1), (8, 8, 3, 1), (13, 17, 3, 2), (24, 16, 1, 2)]
# Channels and kernel of depth-wise windows, inputs and outputs of linear layers.
DEPTHWISE = [(1, 3), (3, 3), (4, 2), (6, 5), (8, 3), (19, 3)]
LINEAR = [(1, 1), (7, 3), (8, 8), (64, 10), (131, 9)]


def layers() -> bytes:
    """One layer for each case, with weights and inputs that reach both ends of their range."""
    rng = np.random.default_rng(3)
    g = GraphBuilder()
    inputs, outputs = [], []

    def weights(shape: tuple[int, ...]) -> np.ndarray:
        values = rng.integers(-128, 128, shape)
        values.flat[:: max(1, values.size // 3)] = -128
        return values

    def layer(
        name: str, x_shape: tuple[int, ...], w_shape: tuple[int, ...], y_shape: tuple[int, ...], zero: int
    ) -> list[int]:
        x = g.tensor(f"{name}_in", x_shape, DType.INT8, scale=0.02, zero_point=zero)
        w = g.tensor(f"{name}_weights", w_shape, DType.INT8, scale=0.01, data=weights(w_shape))
        bias = g.tensor(
            f"{name}_bias", (y_shape[-1],), DType.INT32, scale=0.0002, data=rng.integers(-999, 999, y_shape[-1])
        )
        y = g.tensor(f"{name}_out", y_shape, DType.INT8, scale=0.15, zero_point=-3)
        inputs.append(x)
        outputs.append(y)
        return [x, w, bias, y]

    for at, (cin, cout, kernel, stride) in enumerate(CONVOLUTIONS):
        size = -(-5 // stride)
        *args, y = layer(
            f"conv{at}", (1, 5, 6, cin), (cout, kernel, kernel, cin), (1, size, -(-6 // stride), cout), -128 + 37 * at
        )
        g.op("CONV_2D", args, [y], padding="SAME", stride_w=stride, stride_h=stride)
    for at, (channels, kernel) in enumerate(DEPTHWISE):
        *args, y = layer(
            f"dw{at}", (1, 5, 6, channels), (1, kernel, kernel, channels), (1, 5, 6, channels), 127 - 37 * at
        )
        g.op("DEPTHWISE_CONV_2D", args, [y], padding="SAME", stride_w=1, stride_h=1, depth_multiplier=1)
    for at, (cin, cout) in enumerate(LINEAR):
        *args, y = layer(f"fc{at}", (2, cin), (cout, cin), (2, cout), 11 * at)
        g.op("FULLY_CONNECTED", args, [y])
    return write_model(g.finish(inputs, outputs))


@pytest.mark.parametrize("cpu", [image.CPU, image.PORTABLE], ids=["dsp", "portable"])
@pytest.mark.parametrize("target", ["imxrt700", "mcxn94x"])
def test_layers_of_every_shape_are_the_hosts(
    build: Build, litert_model: Callable[..., Model], target: str, cpu: str
) -> None:
    model = litert_model(f"layers_{target}", layers(), target=target)
    ran = image.run_image(build(model, f"all-{cpu}", cpu=cpu))
    assert ran.status == 0, ran.text
    outputs, cycles = model.on_host()
    assert len(outputs) == len(CONVOLUTIONS) + len(DEPTHWISE) + len(LINEAR)
    assert [at for at, (mine, hosts) in enumerate(zip(ran.outputs, outputs, strict=True)) if mine != hosts] == []
    assert ran.number("cycles") == cycles


def test_only_the_dsp_build_has_dsp_loops(build: Build, litert_model: Callable[..., Model]) -> None:
    model = litert_model("layers_imxrt700", layers(), target="imxrt700")
    assert "nk_dot" in image.symbols(build(model, f"all-{image.CPU}", cpu=image.CPU))
    assert "nk_dot" not in image.symbols(build(model, f"all-{image.PORTABLE}", cpu=image.PORTABLE))
