"""Straighten: a model of loops and branches as one list of operators, as far as they are known and can run on the NPU.

What stays is not touched: LiteRT runs it on the CPU as the file has it.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from openneutron.compiler import kernels
from openneutron.compiler.signature import of_operator
from openneutron.litert.graph import Graph, Model, Operator
from openneutron.litert.passes.stays import MOST_OPERATORS, MOST_TRIPS, has_control_flow
from openneutron.litert.read import read_model
from openneutron.machine.targets import Target
from openneutron.records import dataclass, field
from openneutron.verdict import Reason

# Operators that no kernel runs because they are gone before: what must hold for that, as users read it.
STRAIGHTENED: dict[str, tuple[str, ...]] = {
    "WHILE": (
        "its number of trips must follow from constants: from counters whose first values and steps are constants",
        f"it runs at most {MOST_TRIPS:,} times; all trips of all loops have at most {MOST_OPERATORS:,} operators that compute",
        "every operator of its body must be one that runs on the NPU; else all of the loop stays on the CPU",
        "what it carries keeps its shape and type, and its graphs read and assign no variables",
    ),
    "IF": (
        "its condition must be a constant",
        "every operator of the branch must be one that runs on the NPU; else it stays on the CPU",
    ),
    "DYNAMIC_UPDATE_SLICE": (
        "it must stand in a loop, at a position that follows from the counters",
        "the update must be as large as the tensor in every dimension but one",
    ),
}


@dataclass
class Straight:
    """Reasons of the loops and branches that stay, by their place in the main graph; and one sentence for each that went."""

    reasons: dict[int, Reason] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    changed: bool = False  # whether any of them went, a branch without a sentence


def straighten(model: Model, target: Target, left_out: Sequence[str] = ()) -> Straight:
    """Unroll the loops of the main graph in place; `left_out` are operators that the user keeps on the CPU.

    Example:
        >>> straighten(model, targets.load("imxrt700")).notes
        ("the loop of 'lstm/while' runs 25 times: its steps were unrolled",)
    """
    if not has_control_flow(model.main):
        return Straight()
    from openneutron.litert.passes.unroll_loops import unroll_loops

    def fits(graph: Graph, op: Operator) -> tuple[str, str] | None:
        reason = kernels.check(of_operator(graph, op), target, streams=True).reason
        return None if reason is None else (reason.message, reason.hint)

    def stays(graph: Graph, op: Operator) -> bool:
        names = [op.code, *(graph.tensors[index].name for index in op.outputs)]
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in left_out for name in names)

    done = unroll_loops(model, fits, stays)
    places = {id(op): at for at, op in enumerate(model.main.operators)}
    reasons = {}
    for op, why in done.stays:
        name = model.main.tensors[op.outputs[0]].name if op.outputs else ""
        reasons[places[id(op)]] = Reason("control_flow", f"{op.code} stays as it is: {why.message}", name, why.hint)
    return Straight(reasons, tuple(_note(name, trips) for name, trips in done.loops), done.changed)


def _note(name: str, trips: int) -> str:
    return f"the loop of {name!r} runs {trips:,} times: its steps were unrolled"


def straight_model(data: bytes, target: Target, left_out: Sequence[str] = (), *, source: str) -> Model:
    """A LiteRT file as the compiler numbers its operators and tensors: what its reports speak about."""
    model = read_model(data, source=source)
    straighten(model, target, left_out)
    return model
