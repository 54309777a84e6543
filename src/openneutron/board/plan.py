"""Stock plan: one NeutronGraph by NXP's rules, with the stages of our own compiler.

Headers of files made by NXP's converter show: every tensor is stored whole, every operator is one call, a view takes no call,
no result overwrites an operand (its ADD does not, ours can), and each buffer gets the lowest free offset.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
from openneutron.litert.graph import Graph
from openneutron.machine.targets import Target
from openneutron.microcode.instructions import Program
from openneutron.microcode.table import MAX_ENDS

# One call per operator: nothing is fused. Unread values are still dropped, otherwise they would need memory.
_NOT_STOCK = tuple(name for name in names() if name != "drop_unused")
# Inputs with other depths are padded by a separate call; the call counts of three files show this.
_PADDED_READERS = ("CONV_2D", "DEPTHWISE_CONV_2D")
# Steps that stock leaves unrolled may have more inputs or outputs than our operands can name, which changes no price.
_LAST = MAX_ENDS - 1


@dataclass(frozen=True)
class StockPlan:
    """One NeutronGraph as NXP's converter would make it; `operators` are the LiteRT operators that cost a call."""

    graph: KernelGraph
    tasks: TaskList
    program: Program
    events: tuple[Timed, ...]
    cycles: int
    operators: frozenset[int]
    padded_inputs: int

    @property
    def calls(self) -> int:
        """Kernel calls as NXP's header counts them."""
        return len(self.operators) + self.padded_inputs


def stock_plan(
    part: Graph, target: Target, *, fetch_constants: bool = False, checks: OperatorCache | None = None
) -> StockPlan:
    """Return the plan of a graph whose operators NXP's converter takes.

    It is made whether or not the target has the memory for it: that is what users want to know.

    Example:
        >>> stock_plan(model.main, targets.load("mcxn94x")).tasks.scratch_bytes
        40960
    """
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
    return StockPlan(graph, tasks, program, tuple(events), cycles, called, _count_padded_inputs(part, target))


def _count_padded_inputs(part: Graph, target: Target) -> int:
    """Return the number of convolution inputs whose channels do not fill the array's length."""
    read = {op.inputs[0] for op in part.operators if op.code in _PADDED_READERS}
    return sum(t in read and part.tensors[t].shape[-1] % target.length != 0 for t in part.inputs)
