"""Time and memory of the whole program: NPU, CPU and the copies between them."""

from __future__ import annotations

from collections.abc import Sequence

from torch.export import ExportedProgram
from torch.fx import Node

from openneutron.board.cpu import CORTEX_M, PORTABLE, delegate_call, on_core
from openneutron.executorch.deliver.backend import Partition
from openneutron.executorch.fx import GETITEM, operator_name, value_of
from openneutron.executorch.place.border import copy_cycles, transposed_bytes
from openneutron.executorch.place.cpu_model import cpu_cycles
from openneutron.machine import targets
from openneutron.report.model import Whole
from openneutron.report.totals import delegate_bytes


def whole_program(
    program: ExportedProgram, partitions: Sequence[Partition], *, target: str, recipe: str, arena_bytes: int
) -> Whole:
    """Sum up a lowered program; for an unknown target the CPU's part is 0.

    Example:
        >>> whole_program(edge, partitions, target="imxrt700", recipe="neutron", arena_bytes=4096).milliseconds
    """
    from executorch.exir.delegate import executorch_call_delegate

    chip = targets.load(target) if target in targets.names() else None
    cycles, operators, copies = 0, 0, 0
    turned: list[int] = []
    waiting = iter(partitions)
    for node in program.graph.nodes:
        if node.op != "call_function" or operator_name(node) == GETITEM:
            continue
        if node.target is executorch_call_delegate:
            partition = next(waiting, None)
            sizes = [] if partition is None else _transposed_bytes(node, partition)
            copies += len(sizes)
            turned.append(sum(sizes))
            continue
        costs = CORTEX_M if operator_name(node).startswith("cortex_m.") else PORTABLE
        spent = cpu_cycles(node, costs if chip is None else on_core(costs, chip))
        cycles, operators = cycles + spent, operators + (spent > 0)

    def milliseconds(count: float) -> float:
        return 0.0 if chip is None else count / chip.cpu_clock_hz * 1e3

    return Whole(
        recipe=recipe,
        timed=chip is not None,
        npu_milliseconds=sum(p.report.totals.milliseconds for p in partitions),
        cpu_milliseconds=milliseconds(cycles),
        call_milliseconds=milliseconds(delegate_call(chip) * len(partitions)) if chip is not None else 0.0,
        copy_milliseconds=milliseconds(copy_cycles(sum(turned), chip)),
        cpu_operators=operators,
        copies=copies,
        copy_bytes=sum(turned),
        graph_copy_bytes=tuple(turned),
        arena_bytes=arena_bytes,
        delegate_bytes=delegate_bytes([p.report.totals for p in partitions], turned),
    )


def _transposed_bytes(call: Node, partition: Partition) -> list[int]:
    """Bytes of each tensor that the delegate transposes between the program's order and the NPU's."""
    inputs = [value_of(node) for node in call.args[1:] if isinstance(node, Node)]
    outputs = value_of(call)
    results = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    given = [inputs[place] for place in partition.input_map if place < len(inputs)]
    pairs = [*zip(given, partition.input_formats, strict=False), *zip(results, partition.output_formats, strict=False)]
    return transposed_bytes(pairs)
