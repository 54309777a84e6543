"""Graphs that a partitioner sends and nobody draws: views, constants, unused and repeated inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from openneutron.litert import DType, GraphBuilder, write_model

_SHAPE = (1, 4, 4, 8)
_FLAT = (1, 128)


class _Graph:
    """A builder with INT8 tensors of one scale."""

    def __init__(self) -> None:
        self.builder = GraphBuilder()
        self.count = 0

    def value(self, shape: Sequence[int] = _SHAPE, constant: int | None = None) -> int:
        self.count += 1
        data = None if constant is None else np.full(shape, constant, np.int8)
        return self.builder.tensor(f"t{self.count}", shape, DType.INT8, scale=0.1, zero_point=5, data=data)

    def numbers(self, values: Sequence[int]) -> int:
        self.count += 1
        return self.builder.tensor(f"t{self.count}", (len(values),), DType.INT32, data=np.array(values, np.int32))

    def op(self, code: str, inputs: list[int], shape: Sequence[int] = _SHAPE, **options: object) -> int:
        made = self.value(shape)
        self.builder.op(code, inputs, [made], **options)
        return made

    def flat(self, source: int) -> int:
        return self.op("RESHAPE", [source, self.numbers(_FLAT)], _FLAT, new_shape=list(_FLAT))

    def finish(self, inputs: list[int], outputs: list[int]) -> bytes:
        return write_model(self.builder.finish(inputs, outputs))


def _view_of_a_result() -> bytes:
    g = _Graph()
    x = g.value()
    y = g.op("RELU", [x])
    return g.finish([x], [y, g.flat(y)])


def _view_of_the_input() -> bytes:
    g = _Graph()
    x = g.value()
    return g.finish([x], [g.flat(x), g.op("RELU", [x])])


def _unused_input() -> bytes:
    g = _Graph()
    unused, x = g.value(), g.value()
    return g.finish([unused, x], [g.op("RELU", [x])])


def _input_as_output() -> bytes:
    g = _Graph()
    x = g.value()
    return g.finish([x], [x, g.op("RELU", [x])])


def _output_twice() -> bytes:
    g = _Graph()
    x = g.value()
    y = g.op("RELU", [x])
    return g.finish([x], [y, y])


def _constant_operands() -> bytes:
    g = _Graph()
    x = g.value()
    y = g.op("ADD", [g.value(constant=1), g.value(constant=3)])
    return g.finish([x], [g.op("ADD", [x, y])])


def _constant_output() -> bytes:
    g = _Graph()
    x = g.value()
    return g.finish([x], [g.op("RELU", [x]), g.flat(g.value(constant=1))])


def _outputs_in_another_order() -> bytes:
    g = _Graph()
    a, b = g.value(), g.value()
    first, second = g.op("ABS", [b]), g.op("RELU", [a])
    return g.finish([a, b], [second, first])


def _whole_slice() -> bytes:
    g = _Graph()
    x = g.value()
    return g.finish([x], [g.op("SLICE", [x, g.numbers([0] * 4), g.numbers(_SHAPE)])])


def _idle_transpose() -> bytes:
    g = _Graph()
    x = g.value()
    return g.finish([x], [g.op("TRANSPOSE", [x, g.numbers([0, 1, 2, 3])])])


def _concatenation_with_itself() -> bytes:
    g = _Graph()
    x = g.value()
    return g.finish([x], [g.op("CONCATENATION", [x, x], (1, 4, 4, 16), axis=3)])


def _rank_5() -> bytes:
    g = _Graph()
    x = g.value((2, 3, 4, 5, 6))
    return g.finish([x], [g.op("TRANSPOSE", [x, g.numbers([1, 0, 4, 2, 3])], (3, 2, 6, 4, 5))])


def _rank_0() -> bytes:
    g = _Graph()
    x = g.value(())
    return g.finish([x], [g.op("ADD", [x, x], ())])


ODD_GRAPHS: dict[str, Callable[[], bytes]] = {
    name.removeprefix("_").replace("_", " "): make
    for name, make in list(globals().items())
    if name.startswith("_") and getattr(make, "__module__", "") == __name__ and not isinstance(make, type)
}
