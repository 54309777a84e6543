"""The whole program: what NPU, CPU and the copies between them cost together, and the memory of all of them."""

from __future__ import annotations

from collections.abc import Sequence

from torch.export import ExportedProgram
from torch.fx import Node

from openneutron.board.cpu import CORTEX_M, DELEGATE_CALL, PORTABLE
from openneutron.executorch.deliver.backend import Partition
from openneutron.executorch.fx import GETITEM, operator_name, value_of
from openneutron.executorch.place.border import copy_cycles, turned_bytes
from openneutron.executorch.place.cpu_model import cpu_cycles
from openneutron.machine import targets
from openneutron.report.model import Whole


def whole_program(
    program: ExportedProgram, partitions: Sequence[Partition], *, target: str, recipe: str, arena_bytes: int
) -> Whole:
    """Sum up a lowered program; without a model of the target's CPU its part stays 0.

    Example:
        >>> whole_program(edge, partitions, target="imxrt700", recipe="neutron", arena_bytes=4096).milliseconds
    """
    from executorch.exir.delegate import executorch_call_delegate

    clock = targets.load(target).cpu_clock_hz if target in targets.names() else 0
    cycles, operators, moved, copies = 0, 0, 0, 0
    waiting = iter(partitions)
    for node in program.graph.nodes:
        if node.op != "call_function" or operator_name(node) == GETITEM:
            continue
        if node.target is executorch_call_delegate:
            partition = next(waiting, None)
            sizes = [] if partition is None else _turned(node, partition)
            copies, moved = copies + len(sizes), moved + sum(sizes)
            continue
        spent = cpu_cycles(node, CORTEX_M if operator_name(node).startswith("cortex_m.") else PORTABLE)
        cycles, operators = cycles + spent, operators + (spent > 0)

    def milliseconds(count: float) -> float:
        return count / clock * 1e3 if clock else 0.0

    return Whole(
        recipe=recipe,
        timed=bool(clock),
        npu_milliseconds=sum(p.report.totals.milliseconds for p in partitions),
        cpu_milliseconds=milliseconds(cycles),
        call_milliseconds=milliseconds(DELEGATE_CALL * len(partitions)),
        copy_milliseconds=milliseconds(copy_cycles(moved)),
        cpu_operators=operators,
        copies=copies,
        copy_bytes=moved,
        arena_bytes=arena_bytes,
        # The delegate turns such tensors into buffers of its own.
        delegate_bytes=moved + sum(p.report.totals.scratch_bytes + p.report.totals.prefetch_bytes for p in partitions),
    )


def _turned(call: Node, partition: Partition) -> list[int]:
    """Bytes of each tensor that the delegate transposes between the program's order and the NPU's."""
    inputs = [value_of(node) for node in call.args[1:] if isinstance(node, Node)]
    outputs = value_of(call)
    results = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    given = [inputs[place] for place in partition.input_map if place < len(inputs)]
    pairs = [*zip(given, partition.input_formats, strict=False), *zip(results, partition.output_formats, strict=False)]
    return turned_bytes(pairs)
