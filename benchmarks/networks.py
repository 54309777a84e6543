"""The reference networks as LiteRT models with random weights: only their layers matter here.

Layers are public facts: MLPerf Tiny v1.1 reference models, the MobileNet papers, NXP's CifarNet example.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from openneutron.compiler.numbers.geometry import SAME, VALID, axis
from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType
from openneutron.litert.write import write_model

SCALE = 0.05  # of every activation; values do not matter here
WEIGHT_SCALE = 0.01


class Layers:
    """A model under construction; methods append one operator and return its output tensor.

    Example:
        >>> net = Layers((1, 32, 32, 3))
        >>> data = net.finish(net.conv(net.input, 16, 3))
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._rng = np.random.default_rng(0)
        self._g = GraphBuilder()
        self.input = self._activation(shape)

    def shape(self, tensor: int) -> tuple[int, ...]:
        return self._g.graph.tensors[tensor].shape

    def conv(
        self,
        x: int,
        channels: int,
        kernel: int | tuple[int, int],
        stride: int = 1,
        act: str = "RELU",
        padding: int = SAME,
    ) -> int:
        """Convolution."""
        kh, kw = (kernel, kernel) if isinstance(kernel, int) else kernel
        _, h, w, c = self.shape(x)
        size = (axis(h, kh, stride, 1, padding)[0], axis(w, kw, stride, 1, padding)[0])
        y = self._activation((1, *size, channels))
        self._op("CONV_2D", x, (channels, kh, kw, c), channels, y, padding=padding, stride_h=stride, stride_w=stride,
                 dilation_h_factor=1, dilation_w_factor=1, fused_activation_function=act)  # fmt: skip
        return y

    def depthwise(
        self, x: int, kernel: int | tuple[int, int] = 3, stride: int = 1, multiplier: int = 1, padding: int = SAME
    ) -> int:
        """Depth-wise convolution with RELU."""
        kh, kw = (kernel, kernel) if isinstance(kernel, int) else kernel
        _, h, w, c = self.shape(x)
        size = (axis(h, kh, stride, 1, padding)[0], axis(w, kw, stride, 1, padding)[0])
        c *= multiplier
        y = self._activation((1, *size, c))
        self._op("DEPTHWISE_CONV_2D", x, (1, kh, kw, c), c, y, padding=padding, stride_h=stride, stride_w=stride,
                 depth_multiplier=multiplier, dilation_h_factor=1, dilation_w_factor=1,
                 fused_activation_function="RELU")  # fmt: skip
        return y

    def fully_connected(self, x: int, channels: int, act: str = "NONE", bias: bool = True) -> int:
        """Fully connected layer; the input is flattened by the operator itself."""
        depth = int(np.prod(self.shape(x)))
        y = self._activation((1, channels))
        self._op("FULLY_CONNECTED", x, (channels, depth), channels, y, bias=bias, fused_activation_function=act)
        return y

    def average_pool(self, x: int, kernel: tuple[int, int], stride: int | tuple[int, int]) -> int:
        """Average pool without padding."""
        n, h, w, c = self.shape(x)
        sh, sw = (stride, stride) if isinstance(stride, int) else stride
        size = (axis(h, kernel[0], sh, 1, VALID)[0], axis(w, kernel[1], sw, 1, VALID)[0])
        y = self._activation((n, *size, c))
        self._g.op("AVERAGE_POOL_2D", [x], [y], padding="VALID", stride_h=sh, stride_w=sw, filter_height=kernel[0],
                   filter_width=kernel[1])  # fmt: skip
        return y

    def add(self, a: int, b: int, act: str = "NONE") -> int:
        """Element-wise sum."""
        y = self._activation(self.shape(a))
        self._g.op("ADD", [a, b], [y], fused_activation_function=act)
        return y

    def max_pool(self, x: int, kernel: int, stride: int) -> int:
        """Max pool without padding."""
        n, h, w, c = self.shape(x)
        y = self._activation((n, *(axis(s, kernel, stride, 1, VALID)[0] for s in (h, w)), c))
        self._g.op("MAX_POOL_2D", [x], [y], padding="VALID", stride_h=stride, stride_w=stride, filter_height=kernel,
                   filter_width=kernel)  # fmt: skip
        return y

    def pad(self, x: int, bottom: int, right: int) -> int:
        """Rows below and columns on the right."""
        n, h, w, c = self.shape(x)
        frame = np.array([[0, 0], [0, bottom], [0, right], [0, 0]], np.int32)
        sides = self._g.tensor(f"sides{x}", (4, 2), DType.INT32, data=frame)
        y = self._activation((n, h + bottom, w + right, c))
        self._g.op("PAD", [x, sides], [y])
        return y

    def resize(self, x: int, height: int, width: int) -> int:
        """Nearest neighbours."""
        n, _, _, c = self.shape(x)
        size = self._g.tensor(f"size{x}", (2,), DType.INT32, data=np.array([height, width], np.int32))
        y = self._activation((n, height, width, c))
        self._g.op("RESIZE_NEAREST_NEIGHBOR", [x, size], [y], align_corners=False, half_pixel_centers=False)
        return y

    def mean(self, x: int) -> int:
        """Mean over height and width; dimensions are kept."""
        axes = self._g.tensor(f"axes{x}", (2,), DType.INT32, data=np.array([1, 2], np.int32))
        y = self._activation((1, 1, 1, self.shape(x)[3]))
        self._g.op("MEAN", [x, axes], [y], keep_dims=True)
        return y

    def reshape(self, x: int, shape: tuple[int, ...]) -> int:
        """The same bytes under another shape."""
        y = self._activation(shape)
        self._g.op("RESHAPE", [x], [y], new_shape=list(shape))
        return y

    def quantized_input(self) -> int:
        """The first tensor behind a float input."""
        y = self._activation(self.shape(self.input))
        self._g.graph.tensors[self.input].dtype = DType.FLOAT32
        self._g.graph.tensors[self.input].quantization = None
        self._g.op("QUANTIZE", [self.input], [y])
        return y

    def softmax(self, x: int) -> int:
        """Softmax over the last dimension."""
        y = self._g.tensor(f"t{len(self._g.graph.tensors)}", self.shape(x), DType.INT8, 1 / 256, -128)
        self._g.op("SOFTMAX", [x], [y], beta=1.0)
        return y

    def dequantize(self, x: int) -> int:
        """The values as float."""
        y = self._g.tensor(f"t{len(self._g.graph.tensors)}", self.shape(x), DType.FLOAT32)
        self._g.op("DEQUANTIZE", [x], [y])
        return y

    def finish(self, *outputs: int) -> bytes:
        """The model's bytes."""
        return write_model(self._g.finish([self.input], list(outputs)))

    def _activation(self, shape: tuple[int, ...]) -> int:
        return self._g.tensor(f"t{len(self._g.graph.tensors)}", shape, DType.INT8, SCALE, 0)

    def _op(
        self, code: str, x: int, weights: tuple[int, ...], channels: int, y: int, bias: bool = True, **options: object
    ) -> None:
        name = f"{len(self._g.graph.tensors)}"
        data = self._rng.integers(-127, 128, weights, dtype=np.int8)
        w = self._g.tensor(f"w{name}", weights, DType.INT8, WEIGHT_SCALE, 0, data=data)
        values = self._rng.integers(-100, 100, channels, dtype=np.int32)
        b = self._g.tensor(f"b{name}", (channels,), DType.INT32, SCALE * WEIGHT_SCALE, 0, data=values) if bias else -1
        self._g.op(code, [x, w, b], [y], **options)


def cifarnet() -> bytes:
    """NXP's CifarNet: 5x5 convolutions, average pools, one fully connected layer (the last pool only subsamples)."""
    net = Layers((1, 32, 32, 3))
    y = net.average_pool(net.conv(net.input, 32, 5), (2, 2), 2)
    y = net.average_pool(net.conv(y, 32, 5), (2, 2), 2)
    y = net.average_pool(net.conv(y, 64, 5), (1, 1), 2)
    return net.finish(net.fully_connected(y, 10))


def resnet8() -> bytes:
    """MLPerf Tiny image classification."""
    net = Layers((1, 32, 32, 3))
    y = net.conv(net.input, 16, 3)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        inner = net.conv(net.conv(y, channels, 3, stride), channels, 3, act="NONE")
        skip = y if stride == 1 else net.conv(y, channels, 1, stride, act="NONE")
        y = net.add(inner, skip, act="RELU")
    return net.finish(net.fully_connected(net.average_pool(y, (8, 8), 8), 10))


def ds_cnn() -> bytes:
    """MLPerf Tiny keyword spotting."""
    net = Layers((1, 49, 10, 1))
    y = net.conv(net.input, 64, (10, 4), 2)
    for _ in range(4):
        y = net.conv(net.depthwise(y), 64, 1)
    return net.finish(net.fully_connected(net.average_pool(y, (25, 5), (25, 5)), 12))


def autoencoder() -> bytes:
    """MLPerf Tiny anomaly detection."""
    net = Layers((1, 640))
    y = net.input
    for channels in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        y = net.fully_connected(y, channels, act="RELU")
    return net.finish(net.fully_connected(y, 640))


def _mobilenet_v1(size: int, width: float, first: int, classes: int) -> bytes:
    net = Layers((1, size, size, 3))
    y = net.conv(net.input, first, 3, 2)
    plan = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))
    for channels, stride in plan:
        y = net.conv(net.depthwise(y, 3, stride), int(channels * width), 1)
    _, h, w, _ = net.shape(y)
    return net.finish(net.fully_connected(net.average_pool(y, (h, w), (h, w)), classes))


def mobilenet_v1() -> bytes:
    """MobileNetV1 1.0 224."""
    return _mobilenet_v1(224, 1.0, 32, 1001)


def vww() -> bytes:
    """MLPerf Tiny visual wake words: MobileNetV1 0.25 at 96."""
    return _mobilenet_v1(96, 0.25, 8, 2)


def mobilenet_v2() -> bytes:
    """MobileNetV2 1.0 224."""
    net = Layers((1, 224, 224, 3))
    y, c = net.conv(net.input, 32, 3, 2), 32
    for expand, channels, count, first in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for at in range(count):
            stride = first if at == 0 else 1
            inner = net.conv(y, expand * c, 1) if expand > 1 else y
            inner = net.conv(net.depthwise(inner, 3, stride), channels, 1, act="NONE")
            y, c = (net.add(y, inner) if stride == 1 and c == channels else inner), channels
    y = net.conv(y, 1280, 1)
    return net.finish(net.fully_connected(net.average_pool(y, (7, 7), 7), 1001))


def chain(operators: int) -> bytes:
    """Residual blocks of 3x3 and 1x1 convolutions at one resolution, `operators` operators in all: to measure growth."""
    net = Layers((1, 16, 16, 8))
    y, made = net.conv(net.input, 8, 3), 1
    while made + 3 <= operators:
        y, made = net.add(net.conv(net.conv(y, 8, 3), 8, 1), y), made + 3
    while made < operators:
        y, made = net.conv(y, 8, 1), made + 1
    return net.finish(y)


NETWORKS: dict[str, Callable[[], bytes]] = {
    "cifarnet": cifarnet, "resnet8": resnet8, "ds_cnn": ds_cnn, "autoencoder": autoencoder, "vww": vww,
    "mobilenet_v1": mobilenet_v1, "mobilenet_v2": mobilenet_v2,
}  # fmt: skip
