"""One report of a whole program from those of its partitions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from openneutron.executorch.deliver.backend import Partition
from openneutron.report.model import NodeVerdict, Report
from openneutron.report.totals import merge_totals


def merge_reports(
    partitions: Sequence[Partition], verdicts: Sequence[NodeVerdict], *, target: str, converter: str, source: str
) -> Report:
    """One report for the program: sums where figures add up, graphs numbered by partition, operators with debug handles.

    For memory the largest graph counts; `Whole` has what all delegates allocate together.
    """
    totals = merge_totals([partition.report.totals for partition in partitions])
    report = Report(target=target, converter=converter, source=source, nodes=tuple(verdicts), totals=totals)
    if not partitions:
        return report
    at = 0
    modules = {node.debug_handle: node.module for node in reversed(verdicts) if node.module}
    operators, kernels, events, buffers, pareto = [], [], [], [], []
    for index, partition in enumerate(partitions):
        own = partition.report
        made: dict[str, str] = {}  # tensor → the module behind the kernel that makes it
        for op in own.operators:
            handles = partition.debug_handles[op.index] if op.index < len(partition.debug_handles) else ()
            read = tuple(maker + at for maker in op.inputs)
            moved_op = dataclasses.replace(op, index=op.index + at, graph=index, debug_handles=handles, inputs=read)
            operators.append(moved_op)
        for kernel in own.kernels:
            moved = tuple(op + at for op in kernel.operators)
            behind = (handle for op in moved for handle in operators[op].debug_handles)
            module = next((modules[handle] for handle in behind if handle in modules), "")
            kernels.append(dataclasses.replace(kernel, graph=index, operators=moved, module=module))
            made[kernel.name] = module
        events += [dataclasses.replace(event, graph=index) for event in own.events]
        buffers += [dataclasses.replace(b, graph=index, module=made.get(b.tensor, "")) for b in own.buffers]
        pareto += [dataclasses.replace(choice, graph=index) for choice in own.pareto]
        at += len(own.operators)
    passes: dict[str, int] = {}
    for partition in partitions:
        for name, count in (*partition.passes.items(), *partition.report.passes.items()):
            passes[name] = passes.get(name, 0) + count
    return dataclasses.replace(
        report,
        converter_version=partitions[0].report.converter_version,
        operators=tuple(operators),
        kernels=tuple(kernels),
        events=tuple(events),
        buffers=tuple(buffers),
        pareto=tuple(pareto),
        passes=passes,
        notes=tuple(dict.fromkeys(note for partition in partitions for note in partition.report.notes)),
    )


def with_modules(partition: Partition, whole: Report) -> Partition:
    """The partition, its kernels with the module names that the program's report has, for the files beside the program."""
    known = {kernel.node: kernel.module for kernel in whole.kernels if kernel.graph == partition.index}
    own = partition.report
    kernels = tuple(dataclasses.replace(one, module=known.get(one.node, "")) for one in own.kernels)
    return dataclasses.replace(partition, report=dataclasses.replace(own, kernels=kernels))
