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
# Channels, kernel, stride, dilation and image width of depth-wise windows: even and odd widths, rows taken in parts, and
# windows wider than any part. Inputs and outputs of linear layers and transposed convolutions.
DEPTHWISE = [(1, 3, 1, 1, 6), (3, 3, 1, 1, 6), (4, 2, 1, 1, 6), (6, 5, 1, 1, 6), (8, 3, 1, 1, 6), (19, 3, 1, 1, 6)]
DEPTHWISE += [(8, 3, 2, 1, 7), (4, 3, 1, 1, 90), (4, 3, 2, 1, 90), (5, 3, 1, 2, 9), (4, 3, 1, 25, 60), (4, 3, 1, 1, 1)]
LINEAR = [(1, 1), (7, 3), (8, 8), (64, 10), (131, 9)]
TRANSPOSED = [(3, 5), (8, 9)]
CASES = len(CONVOLUTIONS) + len(DEPTHWISE) + len(LINEAR) + len(TRANSPOSED)

Shape = tuple[int, ...]


class Layers:
    """A model of unconnected layers, with weights that reach both ends of their range."""

    def __init__(self, dtype: DType) -> None:
        self.dtype, self.graph, self.rng = dtype, GraphBuilder(), np.random.default_rng(3)
        # What is zero for INT8 is anything for UINT8, whose weights have a zero point too; INT16 has none.
        self.wide = dtype is DType.INT16
        self.low = 0 if dtype is DType.UINT8 else -128
        self.weights_zero = 113 if dtype is DType.UINT8 else 0
        self.inputs: list[int] = []
        self.outputs: list[int] = []

    def add(self, code: str, x_shape: Shape, w_shape: Shape, y_shape: Shape, **options: object) -> None:
        """One layer; the inputs' zero points go through the whole range."""
        g, at = self.graph, len(self.outputs)
        zero = 0 if self.wide else self.low + (37 * at) % 256
        x = g.tensor(f"x{at}", x_shape, self.dtype, scale=0.02, zero_point=zero)
        values = self.rng.integers(self.low, self.low + 256, w_shape)
        values.flat[:: max(1, values.size // 3)] = self.low
        kind = DType.INT8 if self.wide else self.dtype
        w = g.tensor(f"w{at}", w_shape, kind, scale=0.01, zero_point=self.weights_zero, data=values)
        offsets = self.rng.integers(-999, 999, y_shape[-1])
        bias = g.tensor(f"b{at}", (y_shape[-1],), DType.INT64 if self.wide else DType.INT32, scale=0.0002, data=offsets)
        y = g.tensor(f"y{at}", y_shape, self.dtype, scale=0.15, zero_point=0 if self.wide else self.low + 125)
        operands = [x, w, bias]
        if code == "TRANSPOSE_CONV":
            operands = [g.tensor(f"shape{at}", (4,), DType.INT32, data=list(y_shape)), w, x, bias]
        g.op(code, operands, [y], **options)
        self.inputs.append(x)
        self.outputs.append(y)


def layers(dtype: DType) -> bytes:
    """One layer for each case."""
    made = Layers(dtype)
    for cin, cout, kernel, stride in CONVOLUTIONS:
        size = (1, -(-5 // stride), -(-6 // stride), cout)
        steps = {"padding": "SAME", "stride_w": stride, "stride_h": stride}
        made.add("CONV_2D", (1, 5, 6, cin), (cout, kernel, kernel, cin), size, **steps)
    for channels, kernel, stride, dilation, width in DEPTHWISE:
        steps = {"padding": "SAME", "stride_w": stride, "stride_h": stride, "depth_multiplier": 1}
        steps |= {"dilation_w_factor": dilation, "dilation_h_factor": dilation}
        shape, size = (1, 5, width, channels), (1, -(-5 // stride), -(-width // stride), channels)
        made.add("DEPTHWISE_CONV_2D", shape, (1, kernel, kernel, channels), size, **steps)
    for cin, cout in LINEAR:
        made.add("FULLY_CONNECTED", (2, cin), (cout, cin), (2, cout))
    for cin, cout in TRANSPOSED:
        steps = {"padding": "VALID", "stride_w": 2, "stride_h": 2}
        made.add("TRANSPOSE_CONV", (1, 3, 3, cin), (cout, 3, 3, cin), (1, 7, 7, cout), **steps)
    return write_model(made.graph.finish(made.inputs, made.outputs))


@pytest.mark.parametrize("cpu", [image.CPU, image.PORTABLE], ids=["dsp", "portable"])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8, DType.INT16], ids=["int8", "uint8", "int16"])
@pytest.mark.parametrize("target", ["imxrt700", "mcxn94x", "cortex_m33"])
def test_layers_of_every_shape_are_the_hosts(
    build: Build, litert_model: Callable[..., Model], target: str, dtype: DType, cpu: str
) -> None:
    model = litert_model(f"layers_{target}_{dtype.name}", layers(dtype), target=target)
    ran = image.run_image(build(model, f"all-{cpu}", cpu=cpu))
    assert ran.status == 0, ran.text
    outputs, cycles = model.on_host()
    assert len(outputs) == CASES
    assert [at for at, (mine, hosts) in enumerate(zip(ran.outputs, outputs, strict=True)) if mine != hosts] == []
    assert ran.number("cycles") == cycles


def test_only_the_dsp_build_has_dsp_loops(build: Build, litert_model: Callable[..., Model]) -> None:
    model = litert_model("layers_imxrt700_INT8", layers(DType.INT8), target="imxrt700")
    loops = {"nk_dot", "nk_lanes", "nk_wide_dot", "nk_wide_taps"}
    assert loops <= set(image.symbols(build(model, f"all-{image.CPU}", cpu=image.CPU)))
    assert not loops & set(image.symbols(build(model, f"all-{image.PORTABLE}", cpu=image.PORTABLE)))
