"""What "bit-exact" is compared with: LiteRT's reference kernels, operator by operator, and the few exceptions.

`reference` gives the expected outputs of any model, `assert_exact` compiles and executes one and compares at 0 LSB.
`ModelMaker` collects several independent operators in one model, so that a test pays for one compilation;
the strategies draw quantization parameters and shapes that exercise the arithmetic rather than only saturate it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from hypothesis import strategies as st

from openneutron.certify.prove import prove
from openneutron.compiler import kernels
from openneutron.compiler.numbers.multipliers import f32
from openneutron.compiler.signature import of_operator
from openneutron.convert import convert
from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType, Graph, Model, Operator
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.machine.simulator import Simulator
from openneutron.microcode.graph_op import blocks_of, is_graph_op
from openneutron.options import Options
from openneutron.run.golden_source import golden_source
from openneutron.run.reference_overrides import find_override

Array = npt.NDArray[Any]


def rounding_shift(x: Array, bits: int) -> Array:
    """Right shift of int64, halves away from zero."""
    return x if bits == 0 else (x + (1 << (bits - 1)) - (x < 0)) >> bits


def rescale(x: Array, m: int, shift: int) -> Array:
    """MultiplyByQuantizedMultiplier with double rounding, on int64 arrays of int32 values (docs/numerics.md)."""
    left = (x << max(shift, 0)).astype(np.int32).astype(np.int64)
    return rounding_shift((left * m + (1 << 30)) >> 31, max(-shift, 0))


def _div(graph: Graph, op: Operator, values: dict[int, Array]) -> list[Array]:
    """DIV where the reference shifts too far (docs/numerics.md, Division); test_reference_forms holds it against the rest."""
    override = find_override(graph, op)
    assert override is not None
    return [override.compute(graph, op, values)]


@dataclass(frozen=True)
class Golden:
    """Where an operator's expected values come from, and why not from the reference kernels."""

    resolver: OpResolverType | None
    why: str
    compute: Callable[[Graph, Operator, dict[int, Array]], list[Array]] | None = None


REFERENCE = Golden(OpResolverType.BUILTIN_REF, "the definition")
EXCEPTIONS = {
    "ELU": Golden(OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, "not registered among the reference kernels"),
    "SUM": Golden(OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, "the reference reads INT8 bytes as UINT8"),
    "DIV": Golden(None, "the reference shifts small quotients by 32 bits and more", _div),
}


def _exception(graph: Graph, op: Operator) -> Golden | None:
    """How this operator is an exception: a division only where the reference shifts too far, a sum only of INT8."""
    found = EXCEPTIONS.get(op.code)
    return None if golden_source(graph, op).engine == "reference" else found


def interpret(model: bytes, inputs: Sequence[Array], resolver: OpResolverType) -> list[Array]:
    """What LiteRT computes with these kernels."""
    interpreter = Interpreter(model_content=model, num_threads=1, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def reference(model: bytes, inputs: Sequence[Array]) -> list[Array]:
    """The expected outputs. Models with an exceptional operator are evaluated one operator at a time."""
    whole = read_model(model)
    graph = whole.main
    if not any(_exception(graph, op) for op in graph.operators):
        return interpret(model, inputs, OpResolverType.BUILTIN_REF)
    values = {at: t.data for at, t in enumerate(graph.tensors) if t.data is not None}
    values |= dict(zip(graph.inputs, inputs, strict=True))
    for op in graph.operators:
        golden = _exception(graph, op) or REFERENCE
        if golden.compute is not None:
            made = golden.compute(graph, op, values)
        else:
            assert golden.resolver is not None
            read = [i for i in dict.fromkeys(op.inputs) if i >= 0 and graph.tensors[i].data is None]
            part = Model([Graph("one", graph.tensors, [op], read, list(op.outputs)), *whole.graphs[1:]])
            made = interpret(write_model(part), [values[i] for i in read], golden.resolver)
        values |= dict(zip(op.outputs, made, strict=True))
    return [values[i] for i in graph.outputs]


def execute(converted: bytes, inputs: Sequence[Array]) -> list[Array]:
    """Run a model of NeutronGraphs only: each graph twice, on poisoned memory between guards."""
    graph = read_model(converted).main
    values = dict(zip(graph.inputs, inputs, strict=True))
    for op in graph.operators:
        assert is_graph_op(op), f"{op.label} was not converted"
        compiled = blocks_of(graph, op, outputs=len(op.outputs))
        given = [values[i] for i in compiled.inputs]
        with Simulator(compiled.microcode, compiled.weights, compiled.kernels, poison=True) as simulator:
            first, second = simulator.run(given), simulator.run(given)
        for index, one, two in zip(compiled.outputs, first, second, strict=False):
            assert np.array_equal(one, two), f"{graph.tensors[index].name}: two runs differ"
            values[index] = one
    return [values[i] for i in graph.outputs]


def assert_exact(model: bytes, inputs: Sequence[Array], target: str = "imxrt700", **options: Any) -> None:
    """Every operator is converted, and every output byte equals the reference."""
    result = convert(model, Options(target=target, **options))
    left = [f"{op.code}: {op.reason}" for op in result.report.operators if op.reason]
    assert not left, f"not converted: {'; '.join(left)}"
    prove(result.model, model)
    expected = reference(model, inputs)
    graph = read_model(model).main
    for index, want, got in zip(graph.outputs, expected, execute(result.model, inputs), strict=True):
        assert want.shape == got.shape and want.dtype == got.dtype, f"{graph.tensors[index].name}: {got.shape}"
        wrong = np.argwhere(want != got)
        if wrong.size:
            at = tuple(int(i) for i in wrong[0])
            raise AssertionError(
                f"{graph.tensors[index].name}{list(at)} is {got[at]}, the reference says {want[at]}; "
                f"{len(wrong)} of {want.size} elements differ"
            )


def refusal(model: Model, target: str = "imxrt700") -> str:
    """Why the first operator of the model is not converted; "" when it is."""
    verdict = kernels.check(of_operator(model.main, model.main.operators[0]), targets.load(target))
    return str(verdict.reason) if verdict.reason else ""


@dataclass
class ModelMaker:
    """Collects operators with inputs and outputs of their own into one model, then checks it.

    Example:
        >>> maker = ModelMaker(np.random.default_rng(0))
        >>> x = maker.input((1, 4), DType.INT8, 0.5, -3)
        >>> maker.op("SOFTMAX", [x], maker.output((1, 4), DType.INT8, 1 / 256, -128), beta=1.0)
        >>> maker.check()
    """

    rng: np.random.Generator
    builder: GraphBuilder = field(default_factory=GraphBuilder)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    data: list[Array] = field(default_factory=list)

    def values(self, shape: Sequence[int], dtype: DType) -> Array:
        """Random data: uniform, or one value nearly everywhere, or only the extremes."""
        limits = np.iinfo(dtype.numpy)
        kind = self.rng.integers(4)
        if kind == 0:
            return self.rng.choice([limits.min, limits.max], shape).astype(dtype.numpy)
        made = self.rng.integers(limits.min, limits.max, shape, endpoint=True)
        if kind == 1:
            made = np.where(self.rng.random(shape) < 0.9, made.reshape(-1)[0], made)
        return made.astype(dtype.numpy)

    def input(self, shape: Sequence[int], dtype: DType, scale: float, zero_point: int) -> int:
        """A graph input with random data."""
        index = self.builder.tensor(f"in{len(self.inputs)}", shape, dtype, scale, zero_point)
        self.inputs.append(index)
        self.data.append(self.values(shape, dtype))
        return index

    def output(self, shape: Sequence[int], dtype: DType, scale: float, zero_point: int) -> int:
        """A graph output."""
        index = self.builder.tensor(f"out{len(self.outputs)}", shape, dtype, scale, zero_point)
        self.outputs.append(index)
        return index

    def constant(
        self, data: npt.ArrayLike, dtype: DType, scale: Any = None, zero_point: Any = None, axis: int = 0
    ) -> int:
        """A constant tensor."""
        array = np.asarray(data)
        name = f"const{len(self.builder.graph.tensors)}"
        return self.builder.tensor(name, array.shape, dtype, scale, zero_point, axis, array)

    def op(self, code: str, inputs: Sequence[int], output: int, **options: Any) -> None:
        """An operator with one output."""
        self.builder.op(code, inputs, [output], **options)

    def model(self) -> Model:
        """The finished model."""
        return self.builder.finish(self.inputs, self.outputs)

    def check(self, target: str = "imxrt700", **options: Any) -> None:
        """`assert_exact` on what was collected."""
        assert_exact(write_model(self.model()), self.data, target, **options)


ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
TARGETS = ("imxrt700", "mcxn94x", "imx95")
INT32_BIAS = 2  # the schema's number of INT32, for quantized_bias_type


def scales(low: float = -8.0, high: float = 0.0) -> st.SearchStrategy[float]:
    """float32 scales between 2^low and 2^high."""
    return st.floats(low, high, width=32).map(lambda exponent: f32(2.0**exponent))


def zero_points(dtype: DType) -> st.SearchStrategy[int]:
    """Zero points of an 8-bit type, its ends included; 16-bit activations have none but 0."""
    if dtype is DType.INT16:
        return st.just(0)
    limits = np.iinfo(dtype.numpy)
    return st.sampled_from([int(limits.min), int(limits.max), 0]) | st.integers(int(limits.min), int(limits.max))


def seeds() -> st.SearchStrategy[int]:
    """Seed of the data, which hypothesis need not shrink."""
    return st.integers(0, 2**32 - 1)


def spread(in_scale: float, weight_scale: float, terms: int, gain: float) -> float:
    """An output scale that maps sums of `terms` random products to about 8 bits; `gain` moves it off."""
    return f32(in_scale * weight_scale * math.sqrt(terms) * 50.0 * gain)


def discriminating(rng: np.random.Generator, steps: int = 22) -> tuple[float, float, float, Array]:
    """(input scale, weight scale, output scale, accumulators) that tell derivations of the factor apart.

    The accumulators lie between the points at which the rounded and the exact product of the scales change the output,
    or beside them; a bias holds them while the input is at its zero point.
    """
    while True:
        x, w = (f32(2.0 ** rng.uniform(low, low + 4)) for low in (-6, -8))
        apart = abs(f32(x * w) / (x * w) - 1)
        if apart > 2.0**-26:
            break
    y = f32(x * w * 2.0**steps * rng.uniform(1, 2))
    exact, rounded = x * w / y, f32(x * w) / y
    edges = (np.arange(-110, 110) + 0.5)[:, None] / np.array([exact, (exact + rounded) / 2, rounded])
    found = np.unique(np.round(edges)[:, :, None] + np.arange(-1, 2))
    return x, w, y, found[np.abs(found) < 2.0**30].astype(np.int64)
