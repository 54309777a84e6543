"""L1 and L2 as text for `intermediates_dir`, and the converter's log."""

from __future__ import annotations

from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.l2 import Call, Dma, Loop, TaskList, Wait
from openneutron.report.model import Report


def kernel_graph(graph: KernelGraph) -> str:
    """One line per node: outputs = kernel(inputs) parameters."""
    lines = [f"input {v}: {graph.values[v].name} {graph.values[v].shape}" for v in graph.inputs]
    for at, node in enumerate(graph.nodes):
        operands = ", ".join(
            "-" if o is None else f"%{o}" if isinstance(o, int) else f"const[{o.size}]" for o in node.operands
        )
        value = graph.values[node.output]
        lines.append(f"{at}: %{node.output} {value.shape} = {node.kernel}({operands}) {node.params}")
    lines += [f"output {v}: {graph.values[v].name}" for v in graph.outputs]
    for state in graph.states:
        after = f"%{graph.outputs[state.output]}" if state.output >= 0 else "updated in place"
        lines.append(f"state {state.name}: {len(state.initial)} bytes, %{graph.inputs[state.input]} then {after}")
    return "\n".join(lines) + "\n"


def _step(step: Call | Dma | Wait) -> str:
    if isinstance(step, Call):
        return f"call node {step.node} rows {step.first_row}+{step.rows} step {step.row_step}"
    if isinstance(step, Dma):
        return f"dma buffer {step.source}+{step.source_offset} -> {step.target}+{step.target_offset} {step.bytes} bytes"
    return f"wait {step.channel}"


def task_list(tasks: TaskList) -> str:
    """Buffers with offsets and lifetimes, then the tasks."""
    lines = [f"scratch {tasks.scratch_bytes} (lower bound {tasks.lower_bound}), prefetch {tasks.prefetch_bytes}"]
    for at, b in enumerate(tasks.buffers):
        lines.append(
            f"buffer {at}: {b.region.name.lower()}+{b.offset} {b.size} bytes, tasks {b.first}-{b.last} {b.name}"
        )
    for task in tasks.tasks:
        if isinstance(task, Loop):
            lines.append(f"loop {task.iterations}")
            lines += [f"  {_step(step)}" for step in task.body]
        else:
            lines.append(_step(task))
    return "\n".join(lines) + "\n"


def conversion_log(report: Report) -> str:
    """The lines that NXP's converter ends its log with, from our figures."""
    totals = report.totals
    ratio = totals.operators_converted / totals.operators_total if totals.operators_total else 0.0
    left = totals.operators_total - totals.operators_converted
    lines = [
        f"Number of operators after import    = {totals.operators_total}",
        f"Number of operators after optimize  = {len(report.kernels) + left}",
        f"Number of operators converted       = {totals.operators_converted}",
        f"Number of operators NOT converted   = {left}",
        f"Number of Neutron graphs            = {totals.neutron_graphs}",
        f"Operator conversion ratio           = {ratio:.6f}",
    ]
    lines += [f"  {op.code} {op.name}: {op.reason}" for op in report.operators if not op.converted]
    return "\n".join(lines) + "\n"
