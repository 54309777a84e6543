"""Builds single operators and single calls by hand, to test one rule of the checker at a time."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from openneutron.certify import kernels
from openneutron.certify.operators import RULES, Context, elements, moves, products, recurrent, unary  # noqa: F401
from openneutron.certify.published import KERNELS
from openneutron.certify.read.litert import Graph, Operator, Tensor
from openneutron.certify.read.microcode import DTYPES, ITEM, Call, Operand, Program
from openneutron.certify.replay import Machine
from openneutron.certify.tags import constant
from openneutron.certify.world import World

WHERE = "operator 0 (NeutronGraph)"


def tensor(
    shape: Sequence[int], dtype: str = "INT8", scale: float | Sequence[float] = 0.5, zero: int = 0, **more: Any
) -> Tensor:
    """Return a tensor quantized per tensor, or per channel where `scale` is a list; scale 0 means no quantization."""
    scales = () if scale == 0 else tuple(scale) if isinstance(scale, Sequence) else (scale,)
    return Tensor(more.pop("name", "t"), tuple(shape), dtype, scales, (zero,) * len(scales), **more)


def const(data: bytes | Sequence[int], dtype: str = "INT32", shape: Sequence[int] | None = None, **more: Any) -> Tensor:
    """Return a constant, from its bytes or from numbers of its type."""
    item = {"INT8": 1, "UINT8": 1, "BOOL": 1, "INT16": 2, "INT32": 4, "INT64": 8}[dtype]
    if not isinstance(data, bytes):
        data = b"".join((one % (1 << 8 * item)).to_bytes(item, "little") for one in data)
    more.setdefault("scale", 0)
    return tensor((len(data) // item,) if shape is None else shape, dtype, data=memoryview(data), **more)


def context(
    code: str, inputs: Sequence[Tensor | None], *outputs: Tensor, world: World | None = None, **options: Any
) -> Context:
    """Return an operator whose inputs are constants or inputs 0, 1, … of the model; None omits an input."""
    world = World() if world is None else world
    given = [one for one in inputs if one is not None]
    numbers = iter(range(len(given)))
    places = tuple(-1 if one is None else next(numbers) for one in inputs)
    graph = Graph([*given, *outputs])
    values = {
        at: world.symbols.tags(("input", at), one.size) if one.data is None else constant(one.data)
        for at, one in enumerate(given)
    }
    made = tuple(range(len(given), len(given) + len(outputs)))
    return Context(world, graph, Operator(0, code, places, made, options), values)


def apply_rule(
    code: str, inputs: Sequence[Tensor | None], *outputs: Tensor, world: World | None = None, **options: Any
) -> list[array[int]] | None:
    """Return the output tags that the operator's rule computes."""
    return RULES[code](context(code, inputs, *outputs, world=world, **options))


def given(world: World, at: int, size: int) -> array[int]:
    """Return the tags of an input of the model."""
    return world.symbols.tags(("input", at), size)


def operand(
    region: str, shape: tuple[int, int, int, int], dtype: str = "INT8", offset: int = 0, index: int = 0
) -> Operand:
    """Return an operand without gaps that holds all of its rows."""
    batch, height, width, channels = shape
    kind = DTYPES.index(dtype)
    pixel = channels * ITEM[kind]
    pitch = width * pixel
    return Operand(region, index, kind, offset, height * pitch, pitch, pixel, height, batch, height, width, channels)


def machine(world: World, inputs: Sequence[int], outputs: Sequence[int], weights: bytes = b"", **sizes: int) -> Machine:
    """Return a machine with inputs and outputs of these sizes; one unit of length one, so nothing is padded."""
    kernels.load()
    made = {("weights", 0): len(weights), **{(name, 0): size for name, size in sizes.items()}}
    made |= {("input", at): size for at, size in enumerate(inputs)}
    made |= {("output", at): size for at, size in enumerate(outputs)}
    program = Program("imxrt700", 1, 1, made, (), (), 0, weights=weights)
    ready = Machine(program, world, WHERE)
    ready.start(weights, [given(world, at, size) for at, size in enumerate(inputs)], [])
    return ready


def call(
    kernel: str, operands: dict[str, Operand], params: dict[str, Any], *, rounding: int = 0, rows: int = 0
) -> Call:
    """Return a call on all rows of its output; optional operands may be omitted."""
    names = next(row[2] for row in KERNELS.values() if row[0] == kernel)
    absent = Operand("input", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    full = {name.rstrip("?"): operands.get(name.rstrip("?"), absent) for name in names}
    return Call(8, kernel, rounding, 0, 0, rows or operands["output"].height, 0, full, params)


def run_call(ready: Machine, one: Call) -> array[int]:
    """Execute a call and return the tags of output 0."""
    ready.call(one, 0)
    return ready.regions["output", 0]
