"""Kernel graphs made by hand for tests of the stages that only look at shapes and row demands."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from openneutron.compiler.kernels.conv2d import Conv2dParams
from openneutron.compiler.l1 import Alias, KernelGraph, Node, RowDemand, Value
from openneutron.microcode.table import ElementType, Rounding


def conv_params(kernel: int = 1, stride: int = 1, pad: int = 0) -> Conv2dParams:
    values = {field.name: 0 for field in fields(Conv2dParams)}
    values |= {"kernel_h": kernel, "kernel_w": kernel, "stride_h": stride, "stride_w": stride, "pad_top": pad}
    return Conv2dParams(**values | {"dilation_h": 1, "dilation_w": 1, "groups": 1, "clamp_high": 127})


class Net:
    """Builds a graph of convolutions and joins; each call returns the new value."""

    def __init__(self, height: int, width: int = 4, channels: int = 8) -> None:
        self.graph = KernelGraph()
        self.input = self.graph.add_value(Value("x", (1, height, width, channels), ElementType.INT8))
        self.graph.inputs = [self.input]

    def conv(self, source: int, kernel: int, stride: int = 1, pad: int | None = None) -> int:
        n, h, w, _ = self.graph.values[source].shape
        top = kernel // 2 if pad is None else pad
        height = (h + 2 * top - kernel) // stride + 1
        name = f"conv{len(self.graph.nodes)}"
        out = self.graph.add_value(Value(name, (n, height, w, 8), ElementType.INT8))
        weights, table = np.zeros(kernel * kernel * 64, np.uint8), np.zeros(96, np.uint8)
        self.graph.nodes.append(
            Node(
                "conv2d",
                [source, weights, table, None, out],
                out,
                conv_params(kernel, stride, top),
                Rounding.DOUBLE,
                demand={0: RowDemand(stride, 1, top, kernel)},
            )
        )
        return out

    def join(self, left: int, right: int, in_place: tuple[int, ...] = ()) -> int:
        """An element-wise join; the kernel's name only matters for the operand count, so `conv2d`'s slots are used."""
        out = self.graph.add_value(
            Value(f"join{len(self.graph.nodes)}", self.graph.values[left].shape, ElementType.INT8)
        )
        demand = {0: RowDemand(), 1: RowDemand()}
        operands: list[Any] = [left, right, None, None, out]
        self.graph.nodes.append(Node("conv2d", operands, out, conv_params(), demand=demand, in_place=in_place))
        return out

    def concat(self, *parts: int) -> int:
        """The channels of several values, none of them read by anyone else, as one: each becomes a part of its rows."""
        n, h, w, c = self.graph.values[parts[0]].shape
        root = self.graph.add_value(Value(f"cat{len(self.graph.nodes)}", (n, h, w, c * len(parts)), ElementType.INT8))
        pixel = c * len(parts)
        for at, part in enumerate(parts):
            self.graph.values[part].alias = Alias(root, at * c, h * w * pixel, w * pixel, pixel)
        return root

    def enlarge(self, source: int, factor: int, before: int = 0, extent: int = 1) -> int:
        """Rows repeated, or mixed from their neighbours: output row y needs those from y // factor - before on."""
        n, h, w, c = self.graph.values[source].shape
        out = self.graph.add_value(Value(f"large{len(self.graph.nodes)}", (n, h * factor, w, c), ElementType.INT8))
        demand = {0: RowDemand(1, factor, before, extent)}
        self.graph.nodes.append(Node("conv2d", [source, None, None, None, out], out, conv_params(), demand=demand))
        return out

    def finish(self, *outputs: int) -> KernelGraph:
        self.graph.outputs = list(outputs)
        return self.graph
