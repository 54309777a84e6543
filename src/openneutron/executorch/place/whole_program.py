"""Time and memory of the whole program: NPU, CPU and the copies between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from torch.export import ExportedProgram
from torch.fx import Node

from openneutron.board.cpu import CORTEX_M, PORTABLE, delegate_call, on_core
from openneutron.executorch.deliver.backend import Partition
from openneutron.executorch.fx import GETITEM, layer_of, operator_name, value_of
from openneutron.executorch.place.border import copy_cycles, transposed_bytes
from openneutron.executorch.place.cpu_model import cpu_cycles
from openneutron.machine import targets
from openneutron.report.model import CpuTime, NodeVerdict, Whole
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

    def milliseconds(count: float) -> float:
        return 0.0 if chip is None else count / chip.cpu_clock_hz * 1e3

    nodes: list[CpuTime] = []
    calls: list[CpuTime] = []
    turned: list[int] = []
    copies = 0
    waiting = iter(partitions)
    for node in program.graph.nodes:
        if node.op != "call_function" or operator_name(node) == GETITEM:
            continue
        if node.target is executorch_call_delegate:
            partition = next(waiting, None)
            sizes = [] if partition is None else _transposed_bytes(node, partition)
            copies += len(sizes)
            turned.append(sum(sizes))
            graph = f"NeutronGraph {len(turned) - 1}"
            if partition is not None and chip is not None:
                calls.append(CpuTime(graph, "call", "call", milliseconds(delegate_call(chip))))
            if sizes:
                tensors = f"transpose {len(sizes)} tensor{'' if len(sizes) == 1 else 's'}"
                calls.append(CpuTime(graph, tensors, "copy", milliseconds(copy_cycles(turned[-1], chip))))
            continue
        cortex_m = operator_name(node).startswith("cortex_m.")
        costs = CORTEX_M if cortex_m else PORTABLE
        spent = cpu_cycles(node, costs if chip is None else on_core(costs, chip))
        if spent:
            engine = "cortex_m" if cortex_m else "portable"
            nodes.append(CpuTime(node.name, operator_name(node), engine, milliseconds(spent), _place_of(node)))

    return Whole(
        recipe=recipe,
        timed=chip is not None,
        npu_milliseconds=sum(p.report.totals.milliseconds for p in partitions),
        cpu_milliseconds=_total(nodes),
        call_milliseconds=_total(one for one in calls if one.engine == "call"),
        copy_milliseconds=_total(one for one in calls if one.engine == "copy"),
        cpu_operators=len(nodes),
        copies=copies,
        copy_bytes=sum(turned),
        graph_copy_bytes=tuple(turned),
        arena_bytes=arena_bytes,
        delegate_bytes=delegate_bytes([p.report.totals for p in partitions], turned),
        cpu=(*nodes, *calls) if chip is not None else (),
    )


def with_cpu_times(verdicts: Sequence[NodeVerdict], whole: Whole) -> tuple[NodeVerdict, ...]:
    """Return the verdicts with the time that each node left on the CPU takes there."""
    times = {part.name: part.milliseconds for part in whole.cpu if part.engine not in ("call", "copy")}
    return tuple(replace(one, cpu_milliseconds=times.get(one.name, 0.0)) for one in verdicts)


def _place_of(node: Node) -> str:
    """Return the layer behind a node; for one of no layer, such as a border's quantize, the input or output it serves."""
    ends = [f"input {one.name}" for one in node.all_input_nodes if one.op == "placeholder"]
    ends += ["output" for user in node.users if user.op == "output"]
    return layer_of(node) or next(iter(ends), "")


def _total(parts: Iterable[CpuTime]) -> float:
    return math.fsum(part.milliseconds for part in parts)


def _transposed_bytes(call: Node, partition: Partition) -> list[int]:
    """Bytes of each tensor that the delegate transposes between the program's order and the NPU's."""
    inputs = [value_of(node) for node in call.args[1:] if isinstance(node, Node)]
    outputs = value_of(call)
    results = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    given = [inputs[place] for place in partition.input_map if place < len(inputs)]
    pairs = [*zip(given, partition.input_formats, strict=False), *zip(results, partition.output_formats, strict=False)]
    return transposed_bytes(pairs)
