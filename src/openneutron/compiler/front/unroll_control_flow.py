"""Unrolls loops and branches of the main graph whose trips and conditions are constant and whose operators run on the NPU.

Other loops and branches stay unchanged; LiteRT runs them on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from openneutron.compiler import kernels
from openneutron.compiler.front.left_out import left_out as is_left_out
from openneutron.compiler.signature import of_operator
from openneutron.litert.graph import Graph, Model, Operator
from openneutron.litert.passes.control_flow import MOST_OPERATORS, MOST_TRIPS, has_control_flow
from openneutron.litert.read import read_model
from openneutron.machine.targets import Target
from openneutron.verdict import Reason

# Operators without a kernel that unrolling removes, and the conditions for that, as users read them.
CONTROL_FLOW_LIMITS: dict[str, tuple[str, ...]] = {
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
class ControlFlow:
    """Reasons of the loops and branches that stay, by position in the main graph, and a note for each unrolled loop."""

    reasons: dict[int, Reason] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    changed: bool = False  # whether any was unrolled; branches have no note


def unroll_control_flow(model: Model, target: Target, left_out: Sequence[str] = ()) -> ControlFlow:
    """Unroll the loops of the main graph in place; `left_out` are operators that the user keeps on the CPU.

    Example:
        >>> unroll_control_flow(model, targets.load("imxrt700")).notes
        ("the loop of 'lstm/while' runs 25 times: its steps were unrolled",)
    """
    if not has_control_flow(model.main):
        return ControlFlow()
    from openneutron.litert.passes.unroll_loops import unroll_loops

    def fits(graph: Graph, op: Operator) -> tuple[str, str] | None:
        reason = kernels.check(of_operator(graph, op), target, streams=True).reason
        return None if reason is None else (reason.message, reason.hint)

    def stays(graph: Graph, op: Operator) -> bool:
        return is_left_out(graph, op, left_out)

    done = unroll_loops(model, fits, stays)
    places = {id(op): at for at, op in enumerate(model.main.operators)}
    reasons = {}
    for op, why in done.stays:
        name = model.main.tensors[op.outputs[0]].name if op.outputs else ""
        reasons[places[id(op)]] = Reason("control_flow", f"{op.code} stays as it is: {why.message}", name, why.hint)
    return ControlFlow(reasons, tuple(_note(name, trips) for name, trips in done.loops), done.changed)


def _note(name: str, trips: int) -> str:
    return f"the loop of {name!r} runs {trips:,} times: its steps were unrolled"


def read_unrolled(data: bytes, target: Target, left_out: Sequence[str] = (), *, source: str) -> Model:
    """Read a LiteRT file with its loops unrolled: operators and tensors have the numbers that reports use."""
    model = read_model(data, source=source)
    unroll_control_flow(model, target, left_out)
    return model
