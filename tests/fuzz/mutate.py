"""Ways to damage a model: in its bytes, and in its graph with the file kept well-formed around the damage."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from openneutron.errors import OpenNeutronError
from openneutron.litert.graph import DTYPES, Graph, Model, Quantization
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model

Random = np.random.Generator
WORDS = (0, 1, 2, 4, 0x7F, 0x80, 0xFF, 0xFFFF, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
SIZES = (0, 1, 2, 3, 5, 7, 64, 255, 4096, 65_536, 1 << 20, (1 << 31) - 1, -1, -2)
SCALES = (0.0, 1e-30, 1e30, -1.0, float("inf"), float("nan"), 1.0, 1 / 256, 2.0**-31)


def _pick(rng: Random, items: tuple[float, ...] | tuple[int, ...]) -> float:
    return items[int(rng.integers(len(items)))]


def _flip(data: bytearray, rng: Random) -> None:
    for _ in range(int(rng.integers(1, 8))):
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))


def _word(data: bytearray, rng: Random) -> None:
    if len(data) >= 4:
        at = int(rng.integers(len(data) // 4)) * 4
        value = int(_pick(rng, WORDS)) if rng.random() < 0.7 else int(rng.integers(len(data)))
        struct.pack_into("<I", data, at, value)


def _truncate(data: bytearray, rng: Random) -> None:
    del data[int(rng.integers(len(data))) :]


def _move(data: bytearray, rng: Random) -> None:
    size = int(rng.integers(1, 64))
    a, b = (int(rng.integers(max(len(data) - size, 1))) for _ in range(2))
    data[a : a + size] = data[b : b + size]


def _insert(data: bytearray, rng: Random) -> None:
    at = int(rng.integers(len(data)))
    data[at:at] = rng.bytes(int(rng.integers(1, 16)))


_BYTES: tuple[Callable[[bytearray, Random], None], ...] = (_flip, _flip, _word, _word, _truncate, _move, _insert)


def _shape(graph: Graph, rng: Random) -> None:
    tensor = graph.tensors[int(rng.integers(len(graph.tensors)))]
    shape = list(tensor.shape)
    if shape and rng.random() < 0.8:
        shape[int(rng.integers(len(shape)))] = int(_pick(rng, SIZES))
    elif rng.random() < 0.5:
        shape.append(int(_pick(rng, SIZES)))
    else:
        shape = shape[:-1]
    tensor.shape = tuple(shape)
    if rng.random() < 0.5:
        tensor.shape_signature = tuple(-1 for _ in shape)


def _scale(graph: Graph, rng: Random) -> None:
    tensor = graph.tensors[int(rng.integers(len(graph.tensors)))]
    kind = rng.random()
    if kind < 0.2:
        tensor.quantization = None
    elif kind < 0.4:
        zeros = (int(rng.integers(-300, 300)),)
        tensor.quantization = Quantization((0.5,), zeros)
    else:
        count = int(rng.integers(1, 5))
        scales = tuple(float(np.float32(_pick(rng, SCALES))) for _ in range(count))
        tensor.quantization = Quantization(scales, (0,) * count, int(rng.integers(-1, 5)))


def _dtype(graph: Graph, rng: Random) -> None:
    tensor = graph.tensors[int(rng.integers(len(graph.tensors)))]
    tensor.dtype = DTYPES[int(rng.integers(len(DTYPES)))]
    if tensor.data is not None and not tensor.dtype.is_opaque:
        tensor.data = tensor.data.real.astype(tensor.dtype.numpy)


def _constant(graph: Graph, rng: Random) -> None:
    held = [tensor for tensor in graph.tensors if tensor.data is not None]
    if held:
        tensor = held[int(rng.integers(len(held)))]
        if rng.random() < 0.3:
            tensor.data = None
        elif tensor.data is not None and tensor.data.size and tensor.data.dtype.kind in "iu":
            data = tensor.data.copy().reshape(-1)
            limits = np.iinfo(data.dtype)
            value = int(_pick(rng, SIZES))
            data[int(rng.integers(data.size))] = min(max(value, int(limits.min)), int(limits.max))
            tensor.data = data.reshape(tensor.data.shape)


def _wire(graph: Graph, rng: Random) -> None:
    op = graph.operators[int(rng.integers(len(graph.operators)))]
    side = op.inputs if rng.random() < 0.7 else op.outputs
    if side and rng.random() < 0.8:
        side[int(rng.integers(len(side)))] = int(rng.integers(-1, len(graph.tensors)))
    elif side and rng.random() < 0.5:
        side.pop()
    else:
        side.append(int(rng.integers(-1, len(graph.tensors))))


def _order(graph: Graph, rng: Random) -> None:
    a, b = (int(rng.integers(len(graph.operators))) for _ in range(2))
    graph.operators[a], graph.operators[b] = graph.operators[b], graph.operators[a]


def _ends(graph: Graph, rng: Random) -> None:
    side = graph.inputs if rng.random() < 0.5 else graph.outputs
    if side and rng.random() < 0.4:
        side.pop(int(rng.integers(len(side))))
    else:
        side.append(int(rng.integers(len(graph.tensors))))


def _options(graph: Graph, rng: Random) -> None:
    op = graph.operators[int(rng.integers(len(graph.operators)))]
    if op.options is None or rng.random() < 0.1:
        op.options = None
        return
    op.options = copy.copy(op.options)
    numbers = [name for name, value in vars(op.options).items() if isinstance(value, int | float)]
    if numbers:
        name = numbers[int(rng.integers(len(numbers)))]
        small = (0, 1, 2, 3, -1, -2, 7, 64, 1 << 20, (1 << 31) - 1)
        old = getattr(op.options, name)
        new = not old if isinstance(old, bool) else _pick(rng, SCALES if isinstance(old, float) else small)
        setattr(op.options, name, new)


def _code(graph: Graph, rng: Random) -> None:
    a, b = (graph.operators[int(rng.integers(len(graph.operators)))] for _ in range(2))
    a.code, a.options, a.version = b.code, b.options, b.version


_GRAPH: tuple[Callable[[Graph, Random], None], ...] = (
    _shape, _shape, _scale, _dtype, _constant, _wire, _wire, _order, _ends, _options, _options, _code,
)  # fmt: skip


def _copied(model: Model) -> Model:
    """A copy whose tensors and operators may be edited; arrays are shared."""
    graphs = []
    for g in model.graphs:
        tensors = [replace(tensor) for tensor in g.tensors]
        operators = [replace(op, inputs=list(op.inputs), outputs=list(op.outputs)) for op in g.operators]
        graphs.append(replace(g, tensors=tensors, operators=operators, inputs=list(g.inputs), outputs=list(g.outputs)))
    return replace(model, graphs=graphs)


def mutated(data: bytes, rng: Random) -> bytes:
    """The model with a few damages; the same generator state gives the same bytes."""
    if rng.random() < 0.5:
        model = _copied(read_model(data))
        for _ in range(int(rng.integers(1, 4))):
            _GRAPH[int(rng.integers(len(_GRAPH)))](model.main, rng)
        try:
            return write_model(model)
        except (OpenNeutronError, ValueError, OverflowError, TypeError, struct.error, AttributeError, KeyError):
            pass  # what cannot be written cannot be read: damage the bytes instead
    damaged = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        if damaged:
            _BYTES[int(rng.integers(len(_BYTES)))](damaged, rng)
    return bytes(damaged)
