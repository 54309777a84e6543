"""Stock plan: one NeutronGraph by NXP's rules, with the stages of our own compiler.

Headers of files made by NXP's converter show: every tensor is stored whole, every operator is one call, a view takes no call,
no result overwrites an operand (its ADD does not, ours can), and each buffer gets the lowest free offset.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from openneutron.board.ordering import order_operators
from openneutron.board.sdk import PADDED_AND_SLICED, PADDED_CALL, Rules, rules
from openneutron.compiler.back.emit import emit
from openneutron.compiler.back.predict import Timed, predict
from openneutron.compiler.back.verify_schedule import verify
from openneutron.compiler.front.fuse import fuse, names
from openneutron.compiler.front.legalize import legalize
from openneutron.compiler.front.parsed_model import OperatorCache
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.l2 import TaskList
from openneutron.compiler.passes.materialize_outputs import materialize_outputs
from openneutron.compiler.plan.allocate import Effort, allocate
from openneutron.compiler.plan.schedule import schedule
from openneutron.compiler.plan.segments import Structure, whole
from openneutron.litert.codes import VIEWS
from openneutron.litert.graph import Graph, Operator
from openneutron.machine.targets import Target
from openneutron.microcode.instructions import Program
from openneutron.microcode.table import MAX_ENDS

# One call per operator: nothing is fused, but padding that a convolution reads takes no memory of its own: the scratch of a
# face detector shows this, whose header counts the pads among its calls. Unread values are dropped, else they need memory.
_NOT_STOCK = tuple(name for name in names() if name not in ("drop_unused", "fuse_pad"))
_PADDED_READERS = ("CONV_2D", "DEPTHWISE_CONV_2D")
_LAST_LAYERS = ("CONV_2D", "FULLY_CONNECTED")
_AFTER_LAST = (*VIEWS, "SOFTMAX")
# Steps that stock leaves unrolled may have more inputs or outputs than our operands can name, which changes no price.
_LAST = MAX_ENDS - 1


class StockPlan(NamedTuple):
    """One NeutronGraph as NXP's converter would make it; `operators` are the LiteRT operators that cost a call.

    `padding_calls` pad inputs and outputs whose channels do not fill the array, or slice them.
    """

    graph: KernelGraph
    tasks: TaskList
    program: Program
    events: tuple[Timed, ...]
    cycles: int
    operators: frozenset[int]
    padding_calls: int

    @property
    def calls(self) -> int:
        """Kernel calls as NXP's header counts them."""
        return len(self.operators) + self.padding_calls


def stock_plan(
    part: Graph,
    target: Target,
    *,
    fetch_constants: bool = False,
    checks: OperatorCache | None = None,
    by: Rules | None = None,
) -> StockPlan:
    """Return the plan of a graph whose operators NXP's converter takes.

    It is made whether or not the target has the memory for it: that is what users want to know.

    Example:
        >>> stock_plan(model.main, targets.load("mcxn94x")).tasks.scratch_bytes
        40960
    """
    part = replace(part, operators=order_operators(part))
    graph = legalize(part, target, checks=checks)
    fuse(graph, target, _NOT_STOCK, fetch_constants=fetch_constants)
    materialize_outputs(graph, target)
    structure = Structure.of(graph)
    segments = [whole(structure, node) for node in range(len(graph.nodes))]
    tasks = schedule(graph, segments, target, fetch_constants=fetch_constants, structure=structure, overlapping=False)
    allocate(tasks, Effort.GREEDY)
    held = tasks.scratch_bytes + tasks.prefetch_bytes
    verify(graph, tasks, replace(target, sram_bytes=max(target.sram_bytes, held)))
    for buffer in tasks.buffers:
        buffer.index = min(buffer.index, _LAST)
    program = emit(part, graph, tasks, target)
    events, cycles = predict(program, target)
    called = frozenset(source for node in graph.nodes for source in node.sources)
    return StockPlan(graph, tasks, program, tuple(events), cycles, called, _padding_calls(part, target, by))


def _padding_calls(part: Graph, target: Target, by: Rules | None) -> int:
    """Return the calls that pad inputs, and pad or slice outputs, whose channels do not fill the array."""
    by = by or rules(target.name)
    read = {op.inputs[0] for op in part.operators if op.code in _PADDED_READERS}
    inputs = sum(t in read and part.tensors[t].shape[-1] % target.length != 0 for t in part.inputs)
    outputs = len(unfilled_outputs(part, target))
    return inputs * by.pads_input + outputs * {PADDED_CALL: 1, PADDED_AND_SLICED: 2}.get(by.pads_output, 0)


def unfilled_outputs(part: Graph, target: Target) -> list[Operator]:
    """Return the last layers, one per output, whose channels do not fill the array's units."""
    made_by = {tensor: op for op in part.operators for tensor in op.outputs}
    found = []
    for output in part.outputs:
        op = made_by.get(output)
        while op is not None and op.code in _AFTER_LAST:
            op = made_by.get(op.inputs[0])
        if op is not None and op.code in _LAST_LAYERS and part.tensors[op.outputs[0]].shape[-1] % target.units:
            found.append(op)
    return found
