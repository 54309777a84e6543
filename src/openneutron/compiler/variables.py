"""Variables of a LiteRT model: their readers, their writers, their initial contents, and which of them can be on the NPU.

LiteRT has two kinds. A resource variable is named by VAR_HANDLE, read by READ_VARIABLE, assigned by ASSIGN_VARIABLE, and gets
its first contents from the graph that CALL_ONCE names. A variable tensor is an input of a recurrent operator, which updates
it; it holds its zero point at first. Both keep their contents from run to run.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from openneutron.litert.graph import Array, Graph, Model, Operator, Tensor
from openneutron.litert.passes.fold_constants import fold_constants
from openneutron.verdict import Reason

HANDLE, READ, ASSIGN, INITIALIZE = "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"
CODES = frozenset({HANDLE, READ, ASSIGN, INITIALIZE})
_ONE_SHAPE = "set, read and assign it with one shape and type"


@dataclass
class Variable:
    """One resource variable of a graph: the positions of its operators, and its initial contents."""

    name: str
    handles: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    assigns: list[int] = field(default_factory=list)
    initial: Array | None = None

    @property
    def users(self) -> list[int]:
        """Return the positions of all operators of the variable."""
        return [*self.handles, *self.reads, *self.assigns]


@dataclass
class Variables:
    """The resource variables of a model's main graph by name, and the names that each CALL_ONCE sets."""

    by_name: dict[str, Variable] = field(default_factory=dict)
    of_tensor: dict[int, str] = field(default_factory=dict)  # resource tensor → name
    set_by: dict[int, frozenset[str]] = field(default_factory=dict)  # CALL_ONCE → names
    inside: dict[str, str] = field(
        default_factory=dict
    )  # name → the called graph, beside CALL_ONCE's, that names it too


def _name(op: Operator) -> str:
    options = op.options
    parts = [getattr(options, part, None) or b"" for part in ("container", "sharedName")]
    return "/".join(part.decode("utf-8", "replace") if isinstance(part, bytes) else str(part) for part in parts if part)


def variables_of(model: Model) -> Variables:
    """Return the resource variables of the main graph.

    Example:
        >>> variables_of(model).by_name["stream/states"].initial.shape
        (1, 2, 1, 40)
    """
    found = Variables()
    graph = model.main
    for at, op in enumerate(graph.operators):
        if op.code == HANDLE and op.outputs:
            name = _name(op)
            found.of_tensor[op.outputs[0]] = name
            found.by_name.setdefault(name, Variable(name)).handles.append(at)
        elif op.code in (READ, ASSIGN) and op.inputs and op.inputs[0] in found.of_tensor:
            variable = found.by_name[found.of_tensor[op.inputs[0]]]
            (variable.reads if op.code == READ else variable.assigns).append(at)
        elif op.code == INITIALIZE:
            found.set_by[at] = frozenset(_initialize(model, op, found))
    initial = {getattr(graph.operators[at].options, "initSubgraphIndex", 0) for at in found.set_by}
    for number, called in enumerate(model.graphs[1:], 1):
        if number not in initial:
            found.inside |= {_name(op): called.name or str(number) for op in called.operators if op.code == HANDLE}
    return found


def _initialize(model: Model, op: Operator, found: Variables) -> set[str]:
    """Record the constants that the graph of a CALL_ONCE assigns; other initial contents stay unknown."""
    number = getattr(op.options, "initSubgraphIndex", 0)
    if not 0 < number < len(model.graphs):
        return set()
    graph = model.graphs[number]
    fold_constants(graph)
    names: dict[int, str] = {}
    assigned: set[str] = set()
    for inner in graph.operators:
        if inner.code == HANDLE and inner.outputs:
            names[inner.outputs[0]] = _name(inner)
        elif inner.code == ASSIGN and len(inner.inputs) == 2 and inner.inputs[0] in names:
            name = names[inner.inputs[0]]
            assigned.add(name)
            found.by_name.setdefault(name, Variable(name)).initial = graph.tensors[inner.inputs[1]].data
    return assigned


def first_contents(tensor: Tensor) -> Array:
    """Return the initial contents of a recurrent operator's variable tensor: the real value 0."""
    zero = tensor.quantization.zero_point[0] if tensor.quantization and tensor.quantization.zero_point else 0
    return np.full(tensor.shape, zero, tensor.dtype.numpy)


def misuse(graph: Graph, variables: Variables) -> dict[int, Reason]:
    """Return the operators whose variables cannot be on the NPU in any case, each with its reason."""
    reasons: dict[int, Reason] = {}
    unsteady: list[str] = []
    for variable in variables.by_name.values():
        problem = _inside(variables, variable) or _problem(graph, variable)
        if problem is None and (problem := _other_shape(graph, variable)) is not None:
            unsteady.append(variable.name)
        if problem is not None:
            message, hint = problem
            reasons |= {at: Reason("variable", message, variable.name, hint) for at in variable.users}
    reasons |= _dependent_operators(graph, variables, unsteady)
    for at, op in enumerate(graph.operators):
        if op.code in (READ, ASSIGN) and (not op.inputs or op.inputs[0] not in variables.of_tensor):
            reasons[at] = Reason("variable", "its variable is not named by a VAR_HANDLE of the same graph", "")
    return reasons


def _inside(variables: Variables, variable: Variable) -> tuple[str, str] | None:
    where = variables.inside.get(variable.name)
    if where is None:
        return None
    return f"variable {variable.name!r} is named in graph {where!r} too", "read and assign it in the main graph only"


def _dependent_operators(graph: Graph, variables: Variables, names: list[str]) -> dict[int, Reason]:
    """Return the operators that depend on a variable without a fixed shape: their own shapes are unknown too."""
    reasons: dict[int, Reason] = {}
    waiting, met = list(names), set(names)
    while waiting:
        name = waiting.pop()
        found = {index for at in variables.by_name[name].reads for index in graph.operators[at].outputs}
        message = f"it is computed from variable {name!r}, which does not have the shape that it is read with"
        for at, op in enumerate(graph.operators):
            if not found.intersection(op.inputs):
                continue
            found.update(op.outputs)
            where = graph.tensors[op.outputs[0]].name if op.outputs else name
            reasons.setdefault(at, Reason("variable", message, where, _ONE_SHAPE))
            other = variables.of_tensor.get(op.inputs[0]) if op.code == ASSIGN else None
            if other is not None and other not in met:
                met.add(other)
                waiting.append(other)
    return {at: reason for at, reason in reasons.items() if graph.operators[at].code not in CODES}


def _problem(graph: Graph, variable: Variable) -> tuple[str, str] | None:
    handles = {graph.operators[at].outputs[0] for at in variable.handles}
    others = [op.code for at, op in enumerate(graph.operators) if at not in variable.users and handles & {*op.inputs}]
    if others or handles & {*graph.outputs}:
        where = f"goes to {others[0]}" if others else "leaves the graph"
        return f"the handle of variable {variable.name!r} {where}", "name the variable in each graph by a VAR_HANDLE"
    cut = [at for at in variable.reads if not graph.operators[at].outputs]
    cut += [at for at in variable.assigns if len(graph.operators[at].inputs) < 2 or graph.operators[at].inputs[1] < 0]
    if cut:
        return (
            f"{graph.operators[cut[0]].code} of variable {variable.name!r} lacks its value",
            "convert the model again",
        )
    early = variable.reads and (not variable.assigns or min(variable.reads) < min(variable.assigns))
    if variable.initial is None and early:
        return (
            f"variable {variable.name!r} is read before it is set, or set to what is not constant",
            "set it in the graph that CALL_ONCE names, to a constant",
        )
    tensors = _tensors(graph, variable)
    if any(other.quantization != tensors[0].quantization for other in tensors[1:]):
        return f"variable {variable.name!r} has two quantizations", "quantize what is assigned as what is read"
    return None


def _tensors(graph: Graph, variable: Variable) -> list[Tensor]:
    """Return the tensors that the variable is read into, then those that are assigned to it."""
    read = [graph.tensors[graph.operators[at].outputs[0]] for at in variable.reads]
    return read + [graph.tensors[graph.operators[at].inputs[1]] for at in variable.assigns]


def _other_shape(graph: Graph, variable: Variable) -> tuple[str, str] | None:
    """Return a message where reads, assignments and initial contents differ in shape or type, else None."""
    tensors = _tensors(graph, variable)
    if not tensors:
        return None
    first, name = tensors[0], variable.name
    for other in tensors[1:]:
        if (other.shape, other.dtype) != (first.shape, first.dtype):
            shapes = f"{first.dtype} {list(first.shape)} and {other.dtype} {list(other.shape)}"
            return f"variable {name!r} is {shapes}", _ONE_SHAPE
    initial = variable.initial
    if initial is not None and (initial.shape, initial.dtype) != (first.shape, first.dtype.numpy):
        given = f"{initial.dtype} {list(initial.shape)}"
        return f"variable {name!r} is {first.dtype} {list(first.shape)}, its first contents are {given}", _ONE_SHAPE
    return None


def unneeded_initializers(variables: Variables, on_cpu: Collection[int]) -> set[int]:
    """Return the CALL_ONCE operators that can be dropped, because none of their variables stays on the CPU."""
    kept = {name for name, variable in variables.by_name.items() if any(at in on_cpu for at in variable.users)}
    return {at for at, names in variables.set_by.items() if not names & kept}
