"""Random networks of many operators, INT8 or INT16, for tests of whole compiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from openneutron.compiler.numbers.geometry import SAME, VALID, axis
from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType
from openneutron.litert.write import write_model


class Network:
    """Appends operators to a graph; methods take and return tensor indices."""

    def __init__(
        self,
        rng: np.random.Generator,
        shape: tuple[int, ...],
        scale: float = 0.05,
        zero: int = 3,
        dtype: DType = DType.INT8,
    ) -> None:
        self.rng, self.g, self.dtype = rng, GraphBuilder(), dtype
        self.wide = dtype is DType.INT16  # finer by eight bits, and without zero points
        self.quant: dict[int, tuple[float, int]] = {}
        self.input = self._tensor(shape, scale, zero)
        self.outputs: list[int] = []

    def _tensor(self, shape: tuple[int, ...], scale: float, zero: int) -> int:
        zero = 0 if self.wide else zero
        index = self.g.tensor(f"t{len(self.g.graph.tensors)}", shape, self.dtype, scale, zero)
        self.quant[index] = (scale, zero)
        return index

    def shape(self, tensor: int) -> tuple[int, ...]:
        return self.g.graph.tensors[tensor].shape

    def _fresh(self) -> tuple[float, int]:
        scale, zero = float(np.float32(self.rng.uniform(0.02, 0.2))), int(self.rng.integers(-100, 100))
        return (scale / 256, 0) if self.wide else (scale, zero)

    def conv(
        self, x: int, channels: int, kernel: int = 3, stride: int = 1, padding: str = "SAME", act: str = "NONE"
    ) -> int:
        _, h, w, c = self.shape(x)
        scale = float(np.float32(0.01))
        weights = self.rng.integers(-127, 128, (channels, kernel, kernel, c), dtype=np.int8)
        wt = self.g.tensor(f"w{len(self.g.graph.tensors)}", weights.shape, DType.INT8, scale, 0, data=weights)
        bias = self.rng.integers(-2000, 2000, channels, dtype=np.int32)
        bt = self._bias(bias, self.quant[x][0] * scale)
        mode = SAME if padding == "SAME" else VALID
        size = [axis(s, kernel, stride, 1, mode)[0] for s in (h, w)]
        s, z = self._fresh()
        y = self._tensor((self.shape(x)[0], *size, channels), s * 10 * kernel, z)
        self.g.op("CONV_2D", [x, wt, bt], [y], padding=padding, stride_h=stride, stride_w=stride, dilation_h_factor=1,
                  dilation_w_factor=1, fused_activation_function=act)  # fmt: skip
        return y

    def _bias(self, data: np.ndarray[Any, Any], scale: float) -> int:
        dtype = DType.INT64 if self.wide else DType.INT32
        return self.g.tensor(f"b{len(self.g.graph.tensors)}", data.shape, dtype, scale, 0, data=data)

    def depthwise(self, x: int, kernel: int = 3, stride: int = 1) -> int:
        _, h, w, c = self.shape(x)
        weights = self.rng.integers(-127, 128, (1, kernel, kernel, c), dtype=np.int8)
        wt = self.g.tensor(f"w{len(self.g.graph.tensors)}", weights.shape, DType.INT8, 0.01, 0, data=weights)
        bt = self._bias(np.zeros(c, np.int32), self.quant[x][0] * 0.01)
        size = [axis(s, kernel, stride, 1, SAME)[0] for s in (h, w)]
        s, z = self._fresh()
        y = self._tensor((self.shape(x)[0], *size, c), s * 3, z)
        self.g.op("DEPTHWISE_CONV_2D", [x, wt, bt], [y], padding="SAME", stride_h=stride, stride_w=stride, depth_multiplier=1,
                  dilation_h_factor=1, dilation_w_factor=1)  # fmt: skip
        return y

    def add(self, a: int, b: int) -> int:
        s, z = self._fresh()
        y = self._tensor(self.shape(a), s * 10, z)
        self.g.op("ADD", [a, b], [y])
        return y

    def logistic(self, x: int) -> int:
        y = self._tensor(self.shape(x), *((2.0**-15, 0) if self.wide else (1 / 256, -128)))
        self.g.op("LOGISTIC", [x], [y])
        return y

    def requantize(self, x: int, scale: float, zero: int) -> int:
        y = self._tensor(self.shape(x), scale, zero)
        self.g.op("QUANTIZE", [x], [y])
        return y

    def concat(self, parts: list[int], at: int = 3) -> int:
        scale, zero = self.quant[parts[0]]
        aligned = [p if self.quant[p] == (scale, zero) else self.requantize(p, scale, zero) for p in parts]
        shape = list(self.shape(parts[0]))
        shape[at] = sum(self.shape(p)[at] for p in parts)
        y = self._tensor(tuple(shape), scale, zero)
        self.g.op("CONCATENATION", aligned, [y], axis=at)
        return y

    def slice(self, x: int, begin: list[int], size: list[int]) -> int:
        y = self._tensor(tuple(size), *self.quant[x])
        names = len(self.g.graph.tensors)
        b = self.g.tensor(f"begin{names}", (len(begin),), DType.INT32, data=np.array(begin, np.int32))
        s = self.g.tensor(f"size{names}", (len(size),), DType.INT32, data=np.array(size, np.int32))
        self.g.op("SLICE", [x, b, s], [y])
        return y

    def transpose(self, x: int, *order: int) -> int:
        y = self._tensor(tuple(self.shape(x)[axis] for axis in order), *self.quant[x])
        p = self.g.tensor(
            f"order{len(self.g.graph.tensors)}", (len(order),), DType.INT32, data=np.array(order, np.int32)
        )
        self.g.op("TRANSPOSE", [x, p], [y])
        return y

    def reshape(self, x: int, *shape: int) -> int:
        y = self._tensor(shape, *self.quant[x])
        self.g.op("RESHAPE", [x], [y], new_shape=list(shape))
        return y

    def pad(self, x: int, top: int, bottom: int, left: int, right: int) -> int:
        n, h, w, c = self.shape(x)
        y = self._tensor((n, h + top + bottom, w + left + right, c), *self.quant[x])
        pads = np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)
        p = self.g.tensor(f"pads{len(self.g.graph.tensors)}", (4, 2), DType.INT32, data=pads)
        self.g.op("PAD", [x, p], [y])
        return y

    def max_pool(self, x: int, kernel: int = 2, stride: int = 2) -> int:
        n, h, w, c = self.shape(x)
        size = [axis(s, kernel, stride, 1, VALID)[0] for s in (h, w)]
        y = self._tensor((n, *size, c), *self.quant[x])
        self.g.op("MAX_POOL_2D", [x], [y], padding="VALID", stride_h=stride, stride_w=stride, filter_height=kernel,
                  filter_width=kernel)  # fmt: skip
        return y

    def enlarge(self, x: int, bilinear: bool) -> int:
        """Twice the height and width, half-pixel centres where bilinear."""
        n, h, w, c = self.shape(x)
        size = self.g.tensor(
            f"s{len(self.g.graph.tensors)}", (2,), DType.INT32, data=np.array([2 * h, 2 * w], np.int32)
        )
        y = self._tensor((n, 2 * h, 2 * w, c), *self.quant[x])
        code = "RESIZE_BILINEAR" if bilinear else "RESIZE_NEAREST_NEIGHBOR"
        self.g.op(code, [x, size], [y], align_corners=False, half_pixel_centers=bilinear)
        return y

    def global_pool(self, x: int, mean: bool) -> int:
        n, h, w, c = self.shape(x)
        if mean:
            s, z = self._fresh()
            y = self._tensor((n, c), s, z)
            axes = self.g.tensor(f"axes{len(self.g.graph.tensors)}", (2,), DType.INT32, data=np.array([1, 2], np.int32))
            self.g.op("MEAN", [x, axes], [y], keep_dims=False)
        else:
            y = self._tensor((n, 1, 1, c), *self.quant[x])
            self.g.op(
                "AVERAGE_POOL_2D", [x], [y], padding="VALID", stride_h=1, stride_w=1, filter_height=h, filter_width=w
            )
        return y

    def finish(self, *outputs: int) -> bytes:
        return write_model(self.g.finish([self.input], list(outputs)))

    def data(self) -> np.ndarray[Any, Any]:
        limits = np.iinfo(self.dtype.numpy)
        return self.rng.integers(limits.min, limits.max + 1, self.shape(self.input), dtype=self.dtype.numpy)


def random_network(seed: int, dtype: DType = DType.INT8) -> tuple[bytes, np.ndarray[Any, Any]]:
    """A network of convolutions, joins, concatenations, slices, pads and pools."""
    rng = np.random.default_rng(seed)
    shape = (1, int(rng.integers(8, 33)), int(rng.integers(6, 25)), int(rng.integers(1, 9)))
    net = Network(rng, shape, 0.05 / 256 if dtype is DType.INT16 else 0.05, dtype=dtype)
    value = net.input
    for _ in range(int(rng.integers(3, 9))):
        _, h, w, c = net.shape(value)
        kind = rng.choice(
            [
                "conv",
                "conv",
                "stride",
                "residual",
                "concat",
                "slice",
                "pad",
                "pool",
                "depthwise",
                "logistic",
                "rescale",
                "turn",
            ]
        )
        if kind == "conv":
            value = net.conv(
                value, int(rng.integers(1, 24)), int(rng.choice([1, 3, 5])), act=str(rng.choice(["NONE", "RELU"]))
            )
        elif kind == "stride" and min(h, w) > 4:
            value = net.conv(value, int(rng.integers(1, 24)), 3, 2, padding=str(rng.choice(["SAME", "VALID"])))
        elif kind == "residual":
            value = net.add(value, net.conv(net.conv(value, c, 3), c, 1))
        elif kind == "concat":
            value = net.concat(
                list(rng.permutation([net.conv(value, 8, 1), net.conv(value, int(rng.integers(1, 9)), 3), value]))[
                    : int(rng.integers(2, 4))
                ]
            )
        elif kind == "slice" and c > 2 and h > 4:
            value = net.slice(value, [0, 1, 0, 1], [1, h - 2, w, c - 1])
        elif kind == "pad":
            value = net.conv(net.pad(value, 1, 2, 0, 1), 8, 3, padding="VALID") if min(h, w) > 3 else value
        elif kind == "pool" and min(h, w) > 3:
            value = net.max_pool(value)
        elif kind == "depthwise":
            value = net.depthwise(value, 3, int(rng.choice([1, 2])))
        elif kind == "logistic":
            value = net.logistic(net.conv(value, c, 1))
        elif kind == "rescale":
            value = net.requantize(value, 0.15 / 256 if net.wide else 0.15, int(rng.integers(-50, 50)))
        elif kind == "turn":
            order = [0, *(int(axis) for axis in rng.permutation([1, 2, 3]))]
            value = net.transpose(net.transpose(value, 0, 3, 1, 2), *order)
    value = net.conv(value, 8, 1)
    ends = [value]
    if rng.random() < 0.5:
        ends = [net.global_pool(value, bool(rng.random() < 0.5))]
    if rng.random() < 0.3:
        ends.append(net.conv(value, 4, 1))
    return net.finish(*ends), net.data()
