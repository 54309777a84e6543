"""Cut a LiteRT model at its NeutronGraphs; consecutive other operators become a model of their own.

Example:
    >>> [type(step).__name__ for step in steps_of(read_model(data), data, "out.tflite")]
    ['InterpreterStep', 'NeutronStep']
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from openneutron.compiler.variables import CODES, variables_of
from openneutron.errors import RuntimeFailure, UnsupportedError
from openneutron.litert.graph import DType, Graph, Model, Operator, Tensor
from openneutron.litert.write import write_model
from openneutron.microcode.graph_op import is_graph_op
from openneutron.run.aborts import aborts
from openneutron.run.golden_source import golden_source
from openneutron.run.patience import patience
from openneutron.run.reference_overrides import find_override
from openneutron.run.steps import Step
from openneutron.run.steps.interpreter import InterpreterStep
from openneutron.run.steps.neutron import neutron_step
from openneutron.run.steps.override import OverrideStep
from openneutron.run.steps.variable import VariableStep, VariableStore

_SINGLE = ("neutron", "override", "variable")  # engines that take one operator at a time


def steps_of(model: Model, data: bytes, source: str) -> list[Step]:
    """Return the model's operators as steps in execution order."""
    graph = model.main
    kinds = [_engine(graph, op) for op in graph.operators]
    for at, op in enumerate(graph.operators):
        why = aborts(graph, op)
        if why:
            where = f"{source}, operator {at} ({op.label})"
            raise RuntimeFailure(f"LiteRT's kernel would abort: {why}", where=where, hint="calibrate it on real data")
    if set(kinds) <= {"reference", "variable"}:
        ends = (tuple(graph.inputs), tuple(graph.outputs))
        return [InterpreterStep(data, *ends, source, True, patience(model), _keeps_state(model))]
    steps: list[Step] = []
    variables = variables_of(model)
    for name in variables.by_name.keys() & variables.inside.keys():
        message = f"variable {name!r} is named in graph {variables.inside[name]!r} too, and the model has NeutronGraphs"
        raise UnsupportedError(message, where=source, hint="read and assign it in the main graph only")
    store = VariableStore(variables)
    later = _last_readers(graph)
    for (kind, _), run in groupby(range(len(kinds)), key=lambda at: (kinds[at], at if kinds[at] in _SINGLE else 0)):
        positions = list(run)
        operators = [graph.operators[at] for at in positions]
        override = find_override(graph, operators[0])
        if kind == "neutron":
            steps.append(neutron_step(graph, operators[0], f"{source}, operator {positions[0]} (NeutronGraph)"))
        elif kind == "variable":
            steps.append(VariableStep(operators[0], store, source))
        elif override is not None:
            kernel = _part(model, operators, later, positions[-1] + 1, source, reference=True, every=True)
            steps.append(OverrideStep(graph, operators[0], override, kernel))
        else:
            steps.append(_part(model, operators, later, positions[-1] + 1, source, reference=kind == "reference"))
    _check_states(graph, kinds, source)
    return steps


def _engine(graph: Graph, op: Operator) -> str:
    """Return what runs an operator: the simulator, its override, LiteRT's reference kernels or its default ones."""
    if is_graph_op(op):
        return "neutron"
    if op.code in CODES:
        return "variable"
    return golden_source(graph, op).engine


def _last_readers(graph: Graph) -> dict[int, float]:
    """Map each tensor to the position of the last operator that reads it; graph outputs to infinity."""
    last: dict[int, float] = {index: readers[-1] for index, readers in graph.consumers().items()}
    return last | dict.fromkeys(graph.outputs, math.inf)


def _check_states(graph: Graph, kinds: Sequence[str], source: str) -> None:
    """Refuse a variable that operators on both sides of a cut share: each interpreter has its own variables."""
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
) -> InterpreterStep:
    """Build a model of consecutive operators; graphs called by control flow keep their numbers."""
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
    return InterpreterStep(write_model(part), inputs, outputs, source, reference, patience(part), _keeps_state(part))


def _keeps_state(model: Model) -> bool:
    """Return whether a run depends on the runs before it."""
    tensors = (tensor for graph in model.graphs for tensor in graph.tensors)
    return any(tensor.is_variable or tensor.dtype is DType.RESOURCE for tensor in tensors)
