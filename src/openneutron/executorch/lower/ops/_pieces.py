"""Average pooling whose windows differ in size: cut into runs of equal windows, pooled one by one, put together again.

LiteRT divides by the taps inside the image and pads by SAME or VALID only. A window that reaches beyond the image in
another way, or that is wider than its neighbour as in adaptive pooling, is pooled on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openneutron.executorch.lower.ops._window import NHWC
from openneutron.executorch.lower.values import Value
from openneutron.litert.graph import DType

if TYPE_CHECKING:
    from openneutron.executorch.lower.call import Call

Span = tuple[int, int]  # first position that a window averages, and the one after the last


@dataclass(frozen=True)
class Run:
    """Consecutive windows of one size with one stride."""

    start: int
    size: int
    step: int
    count: int

    @property
    def length(self) -> int:
        """Number of positions that the windows cover."""
        return (self.count - 1) * self.step + self.size


def runs_of(spans: Sequence[Span]) -> list[Run]:
    """Split the windows along one axis into as few runs as a greedy search finds."""
    found: list[Run] = []
    for begin, end in spans:
        if found:
            last = found[-1]
            step = begin - (last.start + (last.count - 1) * last.step)
            if end - begin == last.size and step > 0 and (last.count == 1 or step == last.step):
                found[-1] = Run(last.start, last.size, step, last.count + 1)
                continue
        found.append(Run(begin, end - begin, end - begin, 1))
    return found


def adaptive_spans(size: int, out: int) -> list[Span]:
    """Return PyTorch's windows of adaptive pooling along one axis."""
    return [(index * size // out, -(-(index + 1) * size // out)) for index in range(out)]


def average_pieces(call: Call, x: Value, tensor: int, rows: Sequence[Span], columns: Sequence[Span]) -> Value:
    """Emit the average over every pair of a row span and a column span of the NHWC `tensor`, with `x`'s parameters."""
    batch, channels = x.shape[:2]
    builder = call.lowering.builder

    def make(name: str, height: int, width: int) -> tuple[Value, int]:
        return call.result(NHWC, x.quantization, (batch, channels, height, width), f"{call.node.name}_{name}")

    def pool(vertical: Run, horizontal: Run) -> tuple[Value, int]:
        source = tensor
        shape = [batch, vertical.length, horizontal.length, channels]
        if builder.graph.tensors[tensor].shape != tuple(shape):
            _, source = make("part", vertical.length, horizontal.length)
            begin = call.constant("begin", [0, vertical.start, horizontal.start, 0], DType.INT32)
            call.emit("SLICE", [tensor, begin, call.constant("size", shape, DType.INT32)], [source])
        value, result = make("piece", vertical.count, horizontal.count)
        call.emit(
            "AVERAGE_POOL_2D", [source], [result], padding="VALID", stride_h=vertical.step, stride_w=horizontal.step,
            filter_height=vertical.size, filter_width=horizontal.size, fused_activation_function="NONE",
        )  # fmt: skip
        return value, result

    def join(parts: list[tuple[Value, int]], axis: int, height: int, width: int) -> tuple[Value, int]:
        if len(parts) == 1:
            return parts[0]
        value, result = make("joined", height, width)
        tensors = [part for _, part in parts]
        call.emit("CONCATENATION", tensors, [result], axis=axis, fused_activation_function="NONE")
        return value, result

    across = runs_of(columns)
    bands = []
    for vertical in runs_of(rows):
        parts = [pool(vertical, horizontal) for horizontal in across]
        bands.append(join(parts, 2, vertical.count, len(columns)))
    value, _ = join(bands, 1, len(rows), len(columns))
    view = value.with_ones(call.shape)
    return view if view is not None else value
