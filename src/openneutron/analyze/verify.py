"""Verification: a NeutronGraph runs as scheduled, and every layer is compared with the golden value of its tensor.

Example:
    >>> found = verify_litert(Path("model.tflite").read_bytes(), [image], target="imxrt700")
    >>> found.first, found.worst
    (None, None)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.analyze.layer import Layer, compare_layer, over_frames
from openneutron.analyze.snapshot import Run, snapshot
from openneutron.certify.functions import Unknown, function_of, wrong_entries
from openneutron.compiler import kernels
from openneutron.compiler.front.ingest import Group, extract
from openneutron.errors import OptionError
from openneutron.litert import table_composite
from openneutron.litert.graph import Graph, Tensor
from openneutron.machine.simulator import Simulator
from openneutron.microcode import abi
from openneutron.microcode.decode import decode
from openneutron.microcode.instructions import Program
from openneutron.microcode.walk import executed_calls, output_of
from openneutron.report.model import Kernel, Report
from openneutron.run.golden_source import golden_source

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Subject:
    """One NeutronGraph with its origin: `inputs` and `outputs` are tensors of `source`, `kernels` its layers."""

    number: int
    where: str
    microcode: bytes
    weights: bytes
    kernels_block: bytes
    source: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    kernels: tuple[Kernel, ...]

    def program(self) -> Program:
        """Return the decoded microcode."""
        kernels.rules()  # importing their files declares the kernels' parameters
        return decode(self.microcode, self.weights, self.kernels_block)


@dataclass(frozen=True)
class Verification:
    """Layers in execution order, the values of named ones, and the cycles of the run."""

    layers: tuple[Layer, ...] = ()
    outputs: tuple[Layer, ...] = ()
    values: dict[str, Array] = field(default_factory=dict)
    cycles: int = 0
    frames: int = 1
    first_frame: int = 0  # first frame with a difference

    @property
    def equal(self) -> bool:
        """True if everything that can be compared is at 0 LSB."""
        return self.first is None

    @property
    def first(self) -> Layer | None:
        """The first layer or output that differs."""
        return next((layer for layer in (*self.layers, *self.outputs) if not layer.equal), None)

    @property
    def worst(self) -> Layer | None:
        """The differing layer or output with the lowest SQNR."""
        return min(
            (one for one in (*self.layers, *self.outputs) if not one.equal), key=lambda one: one.sqnr, default=None
        )

    @property
    def exceptions(self) -> dict[str, tuple[str, ...]]:
        """The golden values that are not LiteRT's reference kernels, each with the names of the layers compared with it."""
        found: dict[str, tuple[str, ...]] = {}
        for layer in self.layers:
            if layer.exception:
                found[layer.exception] = (*found.get(layer.exception, ()), layer.name)
        return found

    def __add__(self, other: Verification) -> Verification:
        return Verification(
            self.layers + other.layers,
            self.outputs + other.outputs,
            self.values | other.values,
            self.cycles + other.cycles,
        )


Verify = Callable[[Sequence[Array], Mapping[int, Array]], Verification]  # takes inputs and golden values by tensor


def stream_of(frames: Sequence[Verification]) -> Verification:
    """Combine the frames of a stream: values get a leading axis, cycles are those of the slowest frame."""
    if len(frames) == 1:
        return frames[0]
    return Verification(
        tuple(over_frames(same) for same in zip(*(one.layers for one in frames), strict=True)),
        tuple(over_frames(same) for same in zip(*(one.outputs for one in frames), strict=True)),
        {name: np.stack([one.values[name] for one in frames]) for name in frames[0].values},
        max(one.cycles for one in frames),
        len(frames),
        next((at for at, one in enumerate(frames) if not one.equal), 0),
    )


@contextmanager
def open_verifier(subject: Subject) -> Iterator[Verify]:
    """Yield a function that verifies one NeutronGraph run after run; state is kept between runs.

    Example:
        >>> with watched(subject) as verify:
        ...     found = [verify([frame], golden.run([frame])) for frame in frames]
    """
    program = subject.program()
    if not same_layers(program, subject.kernels):
        raise OptionError(
            "its layers are not those of the model it is compared with",
            where=subject.where,
            hint="give the model it was compiled from; one compiled with passes switched off cannot be verified this way",
        )
    blocks = (subject.microcode, subject.weights, subject.kernels_block)
    with Simulator(*blocks, poison=True, where=subject.where) as simulator:

        def verify(inputs: Sequence[Array], golden: Mapping[int, Array]) -> Verification:
            run = snapshot(simulator, program, inputs)
            return _compare_layers(subject, run, golden, simulator.cycles)

        yield verify


def verify_subject(subject: Subject, inputs: Sequence[Array], golden: Mapping[int, Array]) -> Verification:
    """Run one NeutronGraph once and compare each layer and output with `golden`, by tensor of the source."""
    with open_verifier(subject) as verify:
        return verify(inputs, golden)


def _compare_layers(subject: Subject, run: Run, golden: Mapping[int, Array], cycles: int) -> Verification:
    exceptions = exceptions_of(subject.source)
    layers: list[Layer] = []
    values: dict[str, Array] = {}
    for kernel in subject.kernels:
        value = run.values[kernel.node]
        layer = Layer(subject.number, kernel.node, kernel.kernel, kernel.name, kernel.output_shape, compared=False)
        expected = _expected_value(kernel, golden)
        if expected is not None and value.size == expected.size:
            value = value.reshape(expected.shape)
            found = compare_layer(value, expected, zero_point(subject.source.tensors[kernel.tensor]))
            layer = dataclasses.replace(layer, compared=True, exception=exceptions.get(kernel.tensor, ""), **found)
        layers.append(layer)
        values[kernel.name] = value
    layers += tables_again(subject)
    outputs = tuple(
        _output(subject, tensor, value, golden[tensor])
        for tensor, value in zip(subject.outputs, run.outputs, strict=True)
    )
    return Verification(tuple(layers), outputs, values, cycles)


def tables_again(subject: Subject) -> list[Layer]:
    """Return the tables that differ from the functions they were made from:

    LiteRT uses the same tables and cannot tell.
    """
    found: list[Layer] = []
    for op in subject.source.operators:
        if op.code != table_composite.CODE or not table_composite.is_table(op.options2):
            continue
        x, table, y = (subject.source.tensors[t] for t in (*op.inputs, op.outputs[0]))
        text = function_of(np.asarray(op.options2.compositeAttributes, np.uint8).tobytes())
        if not text or table.data is None or x.quantization is None or y.quantization is None:
            continue
        try:
            wrong = wrong_entries(text, x.quantization.scalar, y.quantization.scalar, table.data.tobytes())
        except Unknown:
            continue
        if wrong:
            found.append(
                Layer(subject.number, -1, "table", y.name, (table_composite.ENTRIES,), elements=table_composite.ENTRIES,
                      differing=len(wrong), largest=float(max(wrong.values())), sqnr=-math.inf,
                      exception="its function, computed again: the table holds other entries")
            )  # fmt: skip
    return found


def exceptions_of(graph: Graph) -> dict[int, str]:
    """Return tensor → source of its golden value, if that is not LiteRT's reference kernel."""
    found = ((op, golden_source(graph, op).exception) for op in graph.operators)
    return {tensor: why for op, why in found if why for tensor in op.outputs}


def _expected_value(kernel: Kernel, golden: Mapping[int, Array]) -> Array | None:
    """Return the golden value of a layer, or of its channels; None if LiteRT has no such tensor."""
    whole = golden.get(kernel.tensor)
    channels = kernel.output_shape[-1]
    if whole is None or whole.size == np.prod(kernel.output_shape):
        return whole
    return whole[..., kernel.first_channel : kernel.first_channel + channels] if whole.ndim else None


def _output(subject: Subject, index: int, value: Array, golden: Array) -> Layer:
    tensor = subject.source.tensors[index]
    found = compare_layer(value, golden, zero_point(tensor))
    return Layer(subject.number, -1, "output", tensor.name, value.shape, **found)


def border(source: Graph, report: Report, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return inputs and outputs of a NeutronGraph as tensors of the source, in the order of its buffers."""
    members = [op.index for op in report.operators if op.graph == number]
    _, inputs, outputs = extract(source, Group(True, members))
    return tuple(inputs), tuple(outputs)


def zero_point(tensor: Tensor) -> int:
    """Return the tensor's zero point, 0 if it has none or several."""
    quantization = tensor.quantization
    return int(quantization.zero_point[0]) if quantization is not None and len(quantization.zero_point) == 1 else 0


def same_layers(program: Program, layers: Sequence[Kernel]) -> bool:
    """Return whether microcode has exactly these layers: the same kernels with outputs of the same size."""
    found: dict[int, tuple[str, int]] = {}
    for call, _, _ in executed_calls(program):
        o = output_of(call)
        found[call.tag] = (abi.by_id(call.kernel).name, o.batch * o.height * o.width * o.channels)
    return found == {k.node: (k.kernel, int(np.prod(k.output_shape))) for k in layers}
