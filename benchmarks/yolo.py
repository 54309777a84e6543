"""Detectors whose whole-system times on an i.MX 95 are public, as LiteRT models with random weights.

Layers are public facts: YOLOv5 v7.0 and YOLOv8 of Ultralytics, without what decodes boxes on the CPU.
"""

from __future__ import annotations

import numpy as np

from benchmarks.networks import WEIGHT_SCALE, Layers
from openneutron.litert.graph import DType


class _Detector(Layers):
    def block(self, x: int, channels: int, kernel: int, stride: int = 1) -> int:
        """Append convolution and SiLU."""
        y = self.conv(x, channels, kernel, stride, act="NONE")
        gate = self._g.tensor(f"t{len(self._g.graph.tensors)}", self.shape(y), DType.INT8, 1 / 256, -128)
        self._g.op("LOGISTIC", [y], [gate])
        out = self._activation(self.shape(y))
        self._g.op("MUL", [y, gate], [out])
        return out

    def concat(self, *parts: int) -> int:
        shape = self.shape(parts[0])
        out = self._activation((*shape[:3], sum(self.shape(part)[3] for part in parts)))
        self._g.op("CONCATENATION", list(parts), [out], axis=3)
        return out

    def halves(self, x: int) -> tuple[int, int]:
        n, h, w, c = self.shape(x)
        axis = self._constant(np.array(3, np.int32))
        left, right = self._activation((n, h, w, c // 2)), self._activation((n, h, w, c // 2))
        self._g.op("SPLIT", [axis, x], [left, right], num_splits=2)
        return left, right

    def twice(self, x: int) -> int:
        """Append nearest-neighbour upsampling by two."""
        n, h, w, c = self.shape(x)
        out = self._activation((n, 2 * h, 2 * w, c))
        self._g.op("RESIZE_NEAREST_NEIGHBOR", [x, self._constant(np.array([2 * h, 2 * w], np.int32))], [out])
        return out

    def transposed(self, x: int, channels: int) -> int:
        """Append a transposed convolution of 2x2 windows, to twice the size."""
        n, h, w, c = self.shape(x)
        out = self._activation((n, 2 * h, 2 * w, channels))
        data = self._rng.integers(-127, 128, (channels, 2, 2, c), dtype=np.int8)
        weights = self._g.tensor(f"w{out}", data.shape, DType.INT8, WEIGHT_SCALE, 0, data=data)
        shape = self._constant(np.array(self.shape(out), np.int32))
        self._g.op("TRANSPOSE_CONV", [shape, weights, x], [out], padding="VALID", stride_h=2, stride_w=2)
        return out

    def pools(self, x: int, channels: int) -> int:
        """Append max pools of 5, 9 and 13 as three of 5, joined with their input."""
        parts = [self.block(x, channels // 2, 1)]
        for _ in range(3):
            out = self._activation(self.shape(parts[0]))
            self._g.op("MAX_POOL_2D", [parts[-1]], [out], padding="SAME", stride_h=1, stride_w=1, filter_height=5,
                       filter_width=5)  # fmt: skip
            parts.append(out)
        return self.block(self.concat(*parts), channels, 1)

    def c3(self, x: int, channels: int, count: int, *, shortcut: bool = True) -> int:
        """Append YOLOv5's block: bottlenecks beside a 1x1 convolution."""
        y = self.block(x, channels // 2, 1)
        for _ in range(count):
            inner = self.block(self.block(y, channels // 2, 1), channels // 2, 3)
            y = self.add(y, inner) if shortcut else inner
        return self.block(self.concat(y, self.block(x, channels // 2, 1)), channels, 1)

    def c2f(self, x: int, channels: int, count: int, *, shortcut: bool = True) -> int:
        """Append YOLOv8's block: all steps of a chain of bottlenecks, joined with the chain's input."""
        parts = [*self.halves(self.block(x, channels, 1))]
        for _ in range(count):
            inner = self.block(self.block(parts[-1], channels // 2, 3), channels // 2, 3)
            parts.append(self.add(parts[-1], inner) if shortcut else inner)
        return self.block(self.concat(*parts), channels, 1)

    def _constant(self, data: np.ndarray[tuple[int, ...], np.dtype[np.int32]]) -> int:
        return self._g.tensor(f"c{len(self._g.graph.tensors)}", data.shape, DType.INT32, data=data)


def yolov5n() -> bytes:
    """YOLOv5n at 640x640."""
    net = _Detector((1, 640, 640, 3))
    y = net.c3(net.block(net.block(net.input, 16, 6, 2), 32, 3, 2), 32, 1)
    p3 = net.c3(net.block(y, 64, 3, 2), 64, 2)
    p4 = net.c3(net.block(p3, 128, 3, 2), 128, 3)
    p5 = net.block(net.pools(net.c3(net.block(p4, 256, 3, 2), 256, 1), 256), 128, 1)
    n4 = net.block(net.c3(net.concat(net.twice(p5), p4), 128, 1, shortcut=False), 64, 1)
    out3 = net.c3(net.concat(net.twice(n4), p3), 64, 1, shortcut=False)
    out4 = net.c3(net.concat(net.block(out3, 64, 3, 2), n4), 128, 1, shortcut=False)
    out5 = net.c3(net.concat(net.block(out4, 128, 3, 2), p5), 256, 1, shortcut=False)
    return net.finish(*(net.conv(out, 255, 1, act="NONE") for out in (out3, out4, out5)))


def yolov8s_seg() -> bytes:
    """YOLOv8s-seg at 640x640."""
    net = _Detector((1, 640, 640, 3))
    y = net.c2f(net.block(net.block(net.input, 32, 3, 2), 64, 3, 2), 64, 1)
    p3 = net.c2f(net.block(y, 128, 3, 2), 128, 2)
    p4 = net.c2f(net.block(p3, 256, 3, 2), 256, 2)
    p5 = net.pools(net.c2f(net.block(p4, 512, 3, 2), 512, 1), 512)
    n4 = net.c2f(net.concat(net.twice(p5), p4), 256, 1, shortcut=False)
    out3 = net.c2f(net.concat(net.twice(n4), p3), 128, 1, shortcut=False)
    out4 = net.c2f(net.concat(net.block(out3, 128, 3, 2), n4), 256, 1, shortcut=False)
    out5 = net.c2f(net.concat(net.block(out4, 256, 3, 2), p5), 512, 1, shortcut=False)
    heads = [
        net.conv(net.block(net.block(out, inner, 3), inner, 3), channels, 1, act="NONE")
        for out in (out3, out4, out5)
        for inner, channels in ((64, 64), (128, 80), (32, 32))
    ]
    masks = net.block(net.transposed(net.block(out3, 128, 3), 128), 128, 3)
    return net.finish(*heads, net.block(masks, 32, 1))
