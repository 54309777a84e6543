"""Running LiteRT models on this machine: NeutronGraphs in the simulator, everything else in LiteRT's reference kernels.

A converted model is cut at its NeutronGraphs; each run of ordinary operators between them becomes a model of its own. A
model without NeutronGraphs is the reference itself, but for the few operators of `reference_forms`.

Example:
    >>> runner = LiteRtRunner(Path("out.tflite").read_bytes(), source="out.tflite")
    >>> result = runner.run(random_inputs(runner.inputs, seed=0))
    >>> result.outputs["scores"], result.cycles
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from openneutron.compiler.variables import ASSIGN, CODES, READ, Variables, variables_of
from openneutron.errors import FormatError, OptionError, RuntimeFailure, UnsupportedError
from openneutron.litert.graph import DType, Graph, Model, Operator, Tensor
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.machine.batch import Block, Copies, rows_of
from openneutron.machine.simulator import DTYPES, Simulator, TensorInfo, beside_others
from openneutron.microcode.container import container_of
from openneutron.microcode.graph_op import blocks_of, is_graph_op
from openneutron.microcode.table import ALIGNMENT
from openneutron.run import litert_process
from openneutron.run.aborts import aborts
from openneutron.run.forms import Form, form_of
from openneutron.run.golden_source import golden_source
from openneutron.run.patience import patience

Array = npt.NDArray[Any]

ONLY_NXP = "only NXP's runtime runs it; `openneutron inspect` shows its header"
_UNKNOWN_VERSION = re.compile(r"Didn't find op for builtin opcode '(\w+)' version '(\d+)'")
_NEWEST_VERSION = 32  # no operator has as many; a damaged file may claim billions
_SINGLE = ("neutron", "form", "variable")  # engines that take one operator at a time


@dataclass(frozen=True)
class RunResult:
    """Outputs by name in the model's order, and the simulated cycles of all NeutronGraphs (0 when there are none)."""

    outputs: dict[str, Array]
    cycles: int


class _Step(Protocol):
    """Part of a model: reads and writes the values of tensors by index, returns the cycles it took."""

    @property
    def keeps_state(self) -> bool:
        """Whether a run depends on those before it."""

    def run(self, values: dict[int, Array]) -> int: ...

    def reset(self) -> None:
        """Forget what earlier runs left."""


def runner_of(data: bytes, where: str) -> LiteRtRunner:
    """What a `Program` runs a LiteRT model with."""
    return LiteRtRunner(data, source=where)


class LiteRtRunner:
    """A LiteRT model ready to run, converted or not.

    `inputs` and `outputs` are its tensors, in order; `source` is the name errors show.

    Example:
        >>> LiteRtRunner(data).run([image]).outputs
    """

    def __init__(self, data: bytes, *, source: str = "<bytes>") -> None:
        self.source = source
        model = read_model(data, source=source)
        graph = model.main
        self._graph = graph
        self.inputs = tuple(graph.tensors[i] for i in graph.inputs)
        self.outputs = tuple(graph.tensors[i] for i in graph.outputs)
        self._steps = _cut(model, data, source)

    @property
    def neutron_graphs(self) -> int:
        """How many NeutronGraphs the model has."""
        return sum(isinstance(step, _NeutronStep) for step in self._steps)

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence for each kind of operator that is not computed by LiteRT's reference kernel, and why."""
        found = (golden_source(self._graph, op) for op in self._graph.operators if not is_graph_op(op))
        return tuple(dict.fromkeys(one.exception for one in found if one.why))

    def reset(self) -> None:
        """Give every state of the model its first contents again, as before the first run.

        Example:
            >>> runner.reset()
        """
        for step in self._steps:
            step.reset()

    def __call__(self, *inputs: Any) -> tuple[Array, ...]:
        """All outputs of a run on arrays by position, or on one mapping by name."""
        by_name = len(inputs) == 1 and isinstance(inputs[0], Mapping)
        return tuple(self.run(inputs[0] if by_name else inputs).outputs.values())

    @property
    def keeps_state(self) -> bool:
        """Whether a run depends on those before it."""
        return any(step.keeps_state for step in self._steps)

    def many(self, samples: Sequence[Sequence[Any]], *, threads: int) -> list[tuple[Array, ...]]:
        """Outputs of samples up to the first that has to be run alone; of all where the model is one NeutronGraph.

        Example:
            >>> runner.many([(image,), (another,)], threads=2)
        """
        ends = tuple(self._graph.inputs), tuple(self._graph.outputs)
        step = self._steps[0] if len(self._steps) == 1 else None
        if not isinstance(step, _NeutronStep) or (step.reads, step.writes) != ends or step.keeps_state:
            return []
        return step.copies.run(samples, lambda some: step.block([self._bound(one) for one in some]), threads=threads)

    def _bound(self, sample: Sequence[Any]) -> list[Array]:
        by_name = len(sample) == 1 and isinstance(sample[0], Mapping)
        return bind_inputs(self.inputs, sample[0] if by_name else sample, source=self.source)

    def beside_others(self) -> AbstractContextManager[None]:
        """Entered by a thread that loads and runs models of its own while others do the same."""
        return beside_others()

    def run(self, inputs: Sequence[Array] | Mapping[str, Array]) -> RunResult:
        """Run once; `inputs` by position or by tensor name, of exactly the model's types and shapes.

        What the model keeps from run to run (variables, recurrent state) is kept; `reset` forgets it.
        """
        given = bind_inputs(self.inputs, inputs, source=self.source)
        values = dict(zip(self._graph.inputs, given, strict=True))
        cycles = sum(step.run(values) for step in self._steps)
        outputs: dict[str, Array] = {}
        for position, index in enumerate(self._graph.outputs):
            tensor = self._graph.tensors[index]
            value = values[index] if tensor.data is None else tensor.data
            name = tensor.name or f"output_{position}"
            outputs[name if name not in outputs else f"{name}_{position}"] = value
        return RunResult(outputs, cycles)


def bind_inputs(
    tensors: Sequence[Tensor], inputs: Sequence[Array] | Mapping[str, Array], *, source: str
) -> list[Array]:
    """The arrays in the order of the model's inputs; an `OptionError` names what does not fit."""
    names = [tensor.name for tensor in tensors]
    if isinstance(inputs, Mapping):
        if set(inputs) != set(names):
            raise OptionError(
                f"the inputs given are {', '.join(sorted(inputs)) or 'none'}",
                where=source,
                hint=f"it has {_listed(names)}",
            )
        ordered = [inputs[name] for name in names]
    else:
        ordered = list(inputs)
        if len(ordered) != len(names):
            given = f"{len(ordered)} input{'' if len(ordered) == 1 else 's'} given"
            raise OptionError(f"{given}, the model has {len(names)}", where=source, hint=f"it has {_listed(names)}")
    ordered = [_array(value, tensor) for tensor, value in zip(tensors, ordered, strict=True)]
    for tensor, value in zip(tensors, ordered, strict=True):
        if value.dtype != tensor.dtype.numpy or value.shape != tensor.shape:
            raise OptionError(
                f"input {tensor.name!r} is {value.dtype} {list(value.shape)}",
                where=source,
                hint=f"it must be {tensor.dtype.numpy} {list(tensor.shape)}{_scale_of(tensor)}",
            )
    return [np.asarray(value, order="C") for value in ordered]  # ascontiguousarray would give a scalar a dimension


def _array(value: Any, tensor: Tensor) -> Array:
    """An array, also of a torch tensor; numpy's default of 64 bits as float32 where the model takes that."""
    found = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    return found.astype(np.float32) if found.dtype == np.float64 and tensor.dtype is DType.FLOAT32 else found


def random_inputs(tensors: Sequence[Tensor], *, seed: int) -> list[Array]:
    """Seeded data for inputs: integers over their whole range, floats uniform in −1 … 1."""
    generator = np.random.default_rng(seed)
    return [_random(generator, tensor) for tensor in tensors]


def _random(generator: np.random.Generator, tensor: Tensor) -> Array:
    kind = tensor.dtype.numpy
    if tensor.dtype.is_opaque or tensor.dtype is DType.BFLOAT16 or kind.kind == "c":
        raise UnsupportedError(f"no random data can be made for input {tensor.name!r}, which is {tensor.dtype}")
    if kind.kind == "f":
        return generator.uniform(-1, 1, tensor.shape).astype(kind)
    if kind.kind == "b":
        return generator.integers(0, 2, tensor.shape).astype(kind)
    if tensor.quantization is None and kind.itemsize > 1:
        # Wide integers without a scale are counts and indices; small ones are valid for more operators.
        return generator.integers(0, 2, tensor.shape).astype(kind)
    limits = np.iinfo(kind)
    return generator.integers(limits.min, limits.max, tensor.shape, dtype=kind, endpoint=True)


def _listed(names: Sequence[str]) -> str:
    return f"{len(names)}: {', '.join(names)}"


def _scale_of(tensor: Tensor) -> str:
    if tensor.quantization is None or len(tensor.quantization.scale) != 1:
        return ""
    scale, zero_point = tensor.quantization.scalar
    return f" (value / {scale:g} + {zero_point}, rounded)"


def _cut(model: Model, data: bytes, source: str) -> list[_Step]:
    """The model's operators as steps in execution order."""
    graph = model.main
    kinds = [_engine(graph, op) for op in graph.operators]
    for at, op in enumerate(graph.operators):
        why = aborts(graph, op)
        if why:
            where = f"{source}, operator {at} ({op.label})"
            raise RuntimeFailure(f"LiteRT's kernel would abort: {why}", where=where, hint="calibrate it on real data")
    if set(kinds) <= {"reference", "variable"}:
        ends = (tuple(graph.inputs), tuple(graph.outputs))
        return [_InterpreterStep(data, *ends, source, True, patience(model), _keeps_state(model))]
    steps: list[_Step] = []
    variables = variables_of(model)
    for name in variables.by_name.keys() & variables.inside.keys():
        message = f"variable {name!r} is named in graph {variables.inside[name]!r} too, and the model has NeutronGraphs"
        raise UnsupportedError(message, where=source, hint="read and assign it in the main graph only")
    store = VariableStore(variables)
    later = _last_readers(graph)
    for (kind, _), run in groupby(range(len(kinds)), key=lambda at: (kinds[at], at if kinds[at] in _SINGLE else 0)):
        positions = list(run)
        operators = [graph.operators[at] for at in positions]
        form = form_of(graph, operators[0])
        if kind == "neutron":
            steps.append(_neutron(graph, operators[0], f"{source}, operator {positions[0]} (NeutronGraph)"))
        elif kind == "variable":
            steps.append(_VariableStep(operators[0], store, source))
        elif form is not None:
            kernel = _part(model, operators, later, positions[-1] + 1, source, reference=True, every=True)
            steps.append(_FormStep(graph, operators[0], form, kernel))
        else:
            steps.append(_part(model, operators, later, positions[-1] + 1, source, reference=kind == "reference"))
    _check_states(graph, kinds, source)
    return steps


def _engine(graph: Graph, op: Operator) -> str:
    """Who runs an operator: the simulator, its form here, LiteRT's reference kernels, or its default ones."""
    if is_graph_op(op):
        return "neutron"
    if op.code in CODES:
        return "variable"
    return golden_source(graph, op).engine


def _last_readers(graph: Graph) -> dict[int, float]:
    """Tensor → position of the last operator that reads it; infinity for graph outputs."""
    last: dict[int, float] = {index: readers[-1] for index, readers in graph.consumers().items()}
    return last | dict.fromkeys(graph.outputs, math.inf)


def _check_states(graph: Graph, kinds: Sequence[str], source: str) -> None:
    """A variable lives in one interpreter, so operators on both sides of a cut cannot share it."""
    homes: dict[int, int] = {}
    part = 0
    for at, op in enumerate(graph.operators):
        part += at > 0 and kinds[at] != kinds[at - 1]
        for index in op.inputs:
            if index >= 0 and graph.tensors[index].is_variable and homes.setdefault(index, part) != part:
                name = graph.tensors[index].name
                raise UnsupportedError(f"state {name!r} is used on both sides of a NeutronGraph", where=source)


def _part(
    model: Model,
    run: list[Operator],
    later: dict[int, float],
    end: int,
    source: str,
    *,
    reference: bool,
    every: bool = False,
) -> _InterpreterStep:
    """A run of ordinary operators as a model of its own; graphs called by control flow keep their numbers."""
    graph = model.main
    made = {index for op in run for index in op.outputs}
    read = dict.fromkeys(index for op in run for index in op.inputs if index >= 0)
    inputs = tuple(
        index
        for index in read
        if index not in made and not graph.tensors[index].is_constant and not graph.tensors[index].is_variable
    )
    outputs = tuple(index for op in run for index in op.outputs if every or later.get(index, -1) >= end)
    # The others' constants are left out: a tensor that no operator of this part touches costs nothing as an activation.
    used = made | set(read) | {index for op in run for index in op.intermediates}
    tensors = [
        tensor if index in used else Tensor(tensor.name, tensor.shape, tensor.dtype)
        for index, tensor in enumerate(graph.tensors)
    ]
    part = Model(
        [Graph(graph.name, tensors, run, list(inputs), list(outputs)), *model.graphs[1:]], metadata=model.metadata
    )
    return _InterpreterStep(write_model(part), inputs, outputs, source, reference, patience(part), _keeps_state(part))


def _keeps_state(model: Model) -> bool:
    """Whether a run depends on the runs before it."""
    tensors = (tensor for graph in model.graphs for tensor in graph.tensors)
    return any(tensor.is_variable or tensor.dtype is DType.RESOURCE for tensor in tensors)


def _neutron(graph: Graph, op: Operator, where: str) -> _NeutronStep:
    compiled = blocks_of(graph, op, outputs=len(op.outputs), where=where)
    if container_of(graph, op, where=where).made_by == "nxp":
        raise FormatError("it was made by NXP's converter", where=where, hint=ONLY_NXP)
    blocks = compiled.microcode, compiled.weights, compiled.kernels
    simulator = Simulator(*blocks, where=where)
    copies = Copies(lambda: Simulator(*blocks, where=where))
    return _NeutronStep(simulator, compiled.inputs, compiled.outputs[: len(simulator.outputs)], copies)


@dataclass
class _InterpreterStep:
    """Ordinary operators in LiteRT's interpreter, with the reference kernels where there are."""

    data: bytes
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    source: str
    reference: bool
    seconds: int
    keeps_state: bool
    session: litert_process.Session | None = None

    def run(self, values: dict[int, Array]) -> int:
        try:
            outputs = self._session().run([values[index] for index in self.reads], seconds=self.seconds)
        except litert_process.Refused as error:
            raise RuntimeFailure(f"LiteRT could not run the model ({_first_line(error)})", where=self.source) from error
        except RuntimeFailure as error:
            raise RuntimeFailure(error.message, where=self.source, hint=error.hint) from error
        values.update(zip(self.writes, outputs, strict=True))
        return 0

    def reset(self) -> None:
        # LiteRT resets variable tensors, but resource variables only in a new interpreter.
        if self.session is not None:
            self.session.close()
        self.session = None

    def _session(self) -> litert_process.Session:
        lost = self.session is not None and not self.session.alive
        if lost and self.keeps_state:
            raise RuntimeFailure("LiteRT's process has ended, and the model's state with it", hint="reset the model")
        if self.session is None or lost:
            self.session = _loaded(self.data, self.source, self.reference, self.seconds)
        return self.session


@dataclass
class _NeutronStep:
    """One NeutronGraph in the simulator."""

    simulator: Simulator
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    copies: Copies

    @property
    def keeps_state(self) -> bool:
        return self.simulator.info.state_bytes > 0

    def block(self, samples: list[list[Array]]) -> Block[tuple[Array, ...]]:
        """Samples for the driver."""
        inputs = [[_aligned(value) for value in one] for one in samples]
        sizes = [-(-tensor.bytes // ALIGNMENT) * ALIGNMENT for tensor in self.simulator.outputs]
        memory = [_aligned(np.empty(size * len(samples), np.uint8)) for size in sizes]

        def results(done: int, _alive: object = inputs) -> list[tuple[Array, ...]]:
            rows = [
                one.reshape(len(samples), -1)[:done, : t.bytes]
                for one, t in zip(memory, self.simulator.outputs, strict=True)
            ]
            return list(zip(*map(_outputs, rows, self.simulator.outputs), strict=True))

        given = np.array([[value.ctypes.data for value in one] for one in inputs], np.uint64)
        return Block(given, rows_of([one.ctypes.data for one in memory], sizes, len(samples)), results)

    def run(self, values: dict[int, Array]) -> int:
        outputs = self.simulator.run([values[index] for index in self.reads])
        values.update(zip(self.writes, outputs, strict=True))
        return self.simulator.cycles

    def reset(self) -> None:
        self.simulator.reset()


def _aligned(value: Array) -> Array:
    """The array, or a copy of it that is aligned as the driver asks."""
    if value.ctypes.data % ALIGNMENT == 0:
        return value
    room = np.empty(value.nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    copy: Array = room[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    copy[...] = value
    return copy


def _outputs(rows: Array, tensor: TensorInfo) -> list[Array]:
    return [row.view(DTYPES[tensor.dtype]).reshape(tensor.shape) for row in rows]


@dataclass
class _FormStep:
    """One operator whose reference kernel is not defined on all inputs: what is not comes from the form."""

    graph: Graph
    op: Operator
    form: Form
    kernel: _InterpreterStep
    keeps_state: bool = False

    def run(self, values: dict[int, Array]) -> int:
        known = {at: self.graph.tensors[at].data for at in self.op.inputs if at >= 0}
        read = {at: values[at] if data is None else data for at, data in known.items()}
        undefined = self.form.undefined(self.graph, self.op, read)
        if not undefined.all():
            given = self.form.harmless(self.graph, self.op, read, undefined)
            self.kernel.run(given)
            values[self.op.outputs[0]] = given[self.op.outputs[0]]
        if undefined.any():
            ours = self.form.compute(self.graph, self.op, read)
            values[self.op.outputs[0]] = (
                ours if undefined.all() else np.where(undefined, ours, values[self.op.outputs[0]])
            )
        return 0

    def reset(self) -> None:
        """It keeps nothing."""


class VariableStore:
    """The resource variables of a model that is cut into parts, which LiteRT would keep in one interpreter."""

    def __init__(self, variables: Variables) -> None:
        self._variables = variables
        self.held: dict[str, Array] = {}
        self.reset()

    def reset(self) -> None:
        """The contents that CALL_ONCE sets."""
        found = self._variables.by_name.values()
        self.held = {one.name: one.initial for one in found if one.initial is not None}

    def name(self, resource: int) -> str:
        """The variable behind a resource tensor."""
        return self._variables.of_tensor[resource]


@dataclass
class _VariableStep:
    """One operator on a resource variable that stays on the CPU between NeutronGraphs."""

    op: Operator
    store: VariableStore
    source: str
    keeps_state: bool = True

    def run(self, values: dict[int, Array]) -> int:
        if self.op.code == READ:
            name = self.store.name(self.op.inputs[0])
            if name not in self.store.held:
                message = f"variable {name!r} is read before it is set"
                raise RuntimeFailure(message, where=self.source, hint="set it in CALL_ONCE's graph")
            values[self.op.outputs[0]] = self.store.held[name]
        elif self.op.code == ASSIGN:
            self.store.held[self.store.name(self.op.inputs[0])] = values[self.op.inputs[1]]
        return 0

    def reset(self) -> None:
        self.store.reset()


def _loaded(data: bytes, source: str, reference: bool, seconds: int) -> litert_process.Session:
    """The model in LiteRT's process.

    Converters number an operator's version by the types it is used with; the reference kernels lag behind in some numbers,
    not in what they compute, so an unknown version is looked for under the ones before it.
    """
    while True:
        try:
            return litert_process.load(data, reference=reference, seconds=seconds)
        except litert_process.Refused as error:
            unknown = _UNKNOWN_VERSION.search(str(error))
            if unknown is None or not 1 < int(unknown[2]) <= _NEWEST_VERSION:
                raise RuntimeFailure(f"LiteRT refused the model ({_first_line(error)})", where=source) from error
            data = _with_version(data, unknown[1], int(unknown[2]), source)


def _with_version(data: bytes, code: str, version: int, source: str) -> bytes:
    """The model with all operators of this code and version one version lower."""
    model = read_model(data, source=source)
    for graph in model.graphs:
        for op in graph.operators:
            if (op.code, op.version) == (code, version):
                op.version -= 1
    return write_model(model)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
