"""Networks of NXP's examples and model zoo, with their CPU operators: float inputs, softmax, dequantize.

Layers are public facts: NXP's SDK examples, MLPerf Tiny v1.1, and the networks of uNPU-Bench that were converted for MCX N94x.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.networks import Layers
from openneutron.compiler.numbers.geometry import VALID

MOBILENET_V1 = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))


def cifarnet() -> bytes:
    """NXP's CifarNet example."""
    net = Layers((1, 32, 32, 3))
    y = net.average_pool(net.conv(net.input, 32, 5), (2, 2), 2)
    y = net.average_pool(net.conv(y, 32, 5), (2, 2), 2)
    y = net.average_pool(net.conv(y, 64, 5), (1, 1), 2)
    return net.finish(net.dequantize(net.softmax(net.fully_connected(y, 10))))


def ds_cnn_s() -> bytes:
    """NXP's keyword example: float input and output, the first layer a depth-wise convolution of one channel."""
    net = Layers((1, 49, 10, 1))
    y = net.depthwise(net.quantized_input(), (10, 4), 2, multiplier=64)
    for _ in range(4):
        y = net.conv(net.depthwise(y), 64, 1)
    y = net.fully_connected(net.reshape(net.average_pool(y, (25, 5), 2), (1, 64)), 12)
    return net.finish(net.dequantize(net.softmax(y)))


def _mobilenet_v1(size: int, width: float) -> bytes:
    net = Layers((1, size, size, 3))
    y = net.conv(net.input, int(32 * width), 3, 2)
    for channels, stride in MOBILENET_V1:
        y = net.conv(net.depthwise(y, 3, stride), int(channels * width), 1)
    _, h, w, _ = net.shape(y)
    y = net.conv(net.average_pool(y, (h, w), 2), 1001, 1, act="NONE")
    return net.finish(net.dequantize(net.softmax(net.reshape(y, (1, 1001)))))


def mobilenet_v1_025_128() -> bytes:
    """NXP's image example: MobileNetV1 0.25 at 128."""
    return _mobilenet_v1(128, 0.25)


def mobilenet_v1_1_224() -> bytes:
    """NXP's image example with weights in flash: MobileNetV1 1.0 at 224."""
    return _mobilenet_v1(224, 1.0)


def resnet8() -> bytes:
    """MLPerf Tiny image classification."""
    net = Layers((1, 32, 32, 3))
    y = net.conv(net.input, 16, 3)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        inner = net.conv(net.conv(y, channels, 3, stride), channels, 3, act="NONE")
        skip = y if stride == 1 else net.conv(y, channels, 1, stride, act="NONE")
        y = net.add(inner, skip, act="RELU")
    return net.finish(net.softmax(net.fully_connected(net.average_pool(y, (8, 8), 8), 10)))


def ds_cnn() -> bytes:
    """MLPerf Tiny keyword spotting."""
    net = Layers((1, 49, 10, 1))
    y = net.conv(net.input, 64, (10, 4), 2)
    for _ in range(4):
        y = net.conv(net.depthwise(y), 64, 1)
    return net.finish(net.softmax(net.fully_connected(net.average_pool(y, (25, 5), (25, 5)), 12)))


def autoencoder() -> bytes:
    """MLPerf Tiny anomaly detection."""
    net = Layers((1, 640))
    y = net.input
    for channels in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        y = net.fully_connected(y, channels, act="RELU")
    return net.finish(net.fully_connected(y, 640))


def vww() -> bytes:
    """MLPerf Tiny visual wake words: MobileNetV1 0.25 at 96."""
    net = Layers((1, 96, 96, 3))
    y = net.conv(net.input, 8, 3, 2)
    for channels, stride in MOBILENET_V1:
        y = net.conv(net.depthwise(y, 3, stride), channels // 4, 1)
    return net.finish(net.softmax(net.fully_connected(net.average_pool(y, (3, 3), 3), 2)))


def unpu_autoencoder() -> bytes:
    """uNPU-Bench's autoencoder."""
    net = Layers((1, 3, 256))
    y = net.conv(net.reshape(net.input, (1, 1, 3, 256)), 128, 1)
    y = net.conv(y, 64, (1, 3), padding=VALID)
    y = net.fully_connected(y, 32, act="RELU")
    y = net.fully_connected(y, 4, bias=False)
    y = net.fully_connected(net.fully_connected(y, 32, act="RELU"), 96, act="RELU")
    return net.finish(net.reshape(net.fully_connected(y, 768, bias=False), (1, 256, 3)))


def unpu_nas() -> bytes:
    """uNPU-Bench's network found by architecture search."""
    net = Layers((1, 32, 32, 3))
    y = net.conv(net.conv(net.conv(net.input, 64, 3), 32, 1), 64, 3)
    y = net.conv(net.conv(net.max_pool(y, 2, 2), 32, 3), 64, 1)
    y = net.conv(net.conv(net.max_pool(y, 2, 2), 128, 3), 128, 1)
    y = net.conv(net.conv(net.max_pool(y, 2, 2), 64, 3), 128, 3)
    y = net.mean(net.conv(net.max_pool(y, 2, 2), 512, 1))
    return net.finish(net.fully_connected(y, 10))


def unpu_resnet() -> bytes:
    """uNPU-Bench's residual network; its last 3x3 convolution sees an image of one pixel."""
    net = Layers((1, 32, 32, 3))

    def residual(x: int, channels: int) -> int:
        inner = net.conv(x, channels, 3)
        return net.add(net.conv(inner, channels, 3), inner)

    y = net.max_pool(net.conv(residual(net.conv(net.input, 16, 3), 20), 20, 3), 2, 2)
    y = net.max_pool(net.conv(residual(y, 20), 44, 3), 2, 2)
    y = net.conv(net.max_pool(residual(y, 48), 2, 2), 96, 3)
    y = net.conv(net.conv(net.max_pool(y, 2, 2), 512, 1), 128, 1)
    y = net.conv(net.conv(net.max_pool(y, 2, 2), 128, 3), 100, 1, act="NONE")
    return net.finish(net.reshape(y, (1, 100)))


def cifarnet_executorch() -> bytes:
    """NXP's CifarNet example for ExecuTorch: max pools, INT8 inputs and outputs."""
    net = Layers((1, 32, 32, 3))
    y = net.max_pool(net.conv(net.input, 32, 5, act="NONE"), 2, 2)
    y = net.max_pool(net.conv(y, 32, 5, act="NONE"), 2, 2)
    y = net.max_pool(net.conv(y, 64, 5, act="NONE"), 1, 2)
    return net.finish(net.softmax(net.fully_connected(y, 10)))


def yolo_face_detect() -> bytes:
    """The face detector of NXP's model zoo: MobileNet-like backbone, a pyramid of three scales, a head for each."""
    net = Layers((1, 128, 160, 3))

    def separable(x: int, channels: int) -> int:
        return net.conv(net.depthwise(x), channels, 1)

    def halved(x: int, channels: int) -> int:
        return net.conv(net.depthwise(net.pad(x, 1, 1), 3, 2, padding=VALID), channels, 1)

    def residual(x: int) -> int:
        return net.add(x, separable(x, net.shape(x)[3]))

    def head(x: int) -> int:
        return net.conv(net.conv(net.depthwise(net.conv(x, 192, 1)), 144, 1), 18, 1, act="NONE")

    y = separable(net.conv(net.input, 8, 3, 2), 16)
    fine = halved(separable(halved(y, 32), 32), 64)
    middle = net.max_pool(separable(fine, 64), 2, 2)
    coarse = net.max_pool(separable(middle, 64), 2, 2)
    lowest = net.conv(coarse, 32, 1)
    middle = residual(net.add(middle, net.resize(coarse, 8, 10)))
    fine = separable(residual(net.add(fine, net.resize(net.conv(middle, 64, 1), 16, 20))), 64)
    middle = separable(residual(net.add(middle, net.conv(net.max_pool(fine, 2, 2), 64, 1))), 64)
    coarse = residual(net.add(lowest, net.conv(net.max_pool(middle, 2, 2), 32, 1)))
    return net.finish(head(coarse), head(middle), head(fine))


BOARD_NETWORKS: dict[str, Callable[[], bytes]] = {
    one.__name__: one
    for one in (
        cifarnet, ds_cnn_s, mobilenet_v1_025_128, mobilenet_v1_1_224, resnet8, ds_cnn, autoencoder, vww, unpu_autoencoder,
        unpu_nas, unpu_resnet, cifarnet_executorch, yolo_face_detect,
    )
}  # fmt: skip
