"""Emit: L2 with offsets becomes a microcode program."""

from __future__ import annotations

import struct

from openneutron._version import __version__
from openneutron.compiler.kernels import abi_of
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.l2 import Call, Dma, Loop, Operand, TaskList, Wait
from openneutron.litert.graph import Graph
from openneutron.machine.targets import Target
from openneutron.microcode import instructions as m
from openneutron.microcode.abi import STATE_ROLES
from openneutron.microcode.encode import align
from openneutron.microcode.table import NO_SOURCE, Region


def version_tuple() -> tuple[int, int, int]:
    """Return this converter's version as three numbers."""
    major, minor, patch = (int(part) for part in __version__.split(".")[:3])
    return major, minor, patch


def _operand(tasks: TaskList, operand: Operand | None) -> m.Operand:
    if operand is None:
        return m.ABSENT
    b = tasks.buffers[operand.buffer]
    return m.Operand(
        b.region, b.index, operand.dtype, b.offset + operand.offset, operand.plane, operand.pitch, operand.pixel,
        operand.ring, operand.batch, operand.height, operand.width, operand.channels,
    )  # fmt: skip


def _step(graph: KernelGraph, tasks: TaskList, step: Call | Dma | Wait) -> m.Step:
    if isinstance(step, Call):
        node = graph.nodes[step.node]
        kernel = abi_of(node.kernel)
        operands = tuple(_operand(tasks, operand) for operand in step.operands)
        return m.Call(
            kernel.id, kernel.abi, node.rounding, step.node, step.first_row, step.rows, step.row_step, operands,
            node.params,
        )  # fmt: skip
    if isinstance(step, Dma):
        source, target = tasks.buffers[step.source], tasks.buffers[step.target]
        end = target if target.region is Region.OUTPUT else source  # at most one side is the caller's
        return m.Dma(
            channel=step.channel,
            source_region=source.region,
            source_index=end.index,
            target_region=target.region,
            source_offset=source.offset + step.source_offset,
            target_offset=target.offset + step.target_offset,
            bytes=step.bytes,
        )
    return m.Wait(step.channel)


def kernels_block(graph: KernelGraph, target: Target) -> bytes:
    """Return the kernels section: on Neutron-S the sorted ids of the called kernels, on Neutron-C (linked firmware) a mark."""
    if not target.subsystem:
        return bytes(4)
    ids = sorted({abi_of(node.kernel).id for node in graph.nodes})
    block = struct.pack(f"<I{len(ids)}H", len(ids), *ids)
    return block.ljust(align(len(block), 4), b"\0")


def _states(graph: KernelGraph, weights: bytes) -> tuple[tuple[m.StateRow, ...], bytes]:
    """Return the state table, and the weights block extended by initial contents that are not one repeated word."""
    rows: list[m.StateRow] = []
    for state, offset in zip(graph.states, graph.state_offsets(), strict=True):
        size = align(len(state.initial))
        word = (state.initial * 4)[:4]  # a state may be shorter than a word
        if (word * len(state.initial))[: len(state.initial)] == state.initial:
            rows.append(m.StateRow(offset, size, NO_SOURCE, int.from_bytes(word, "little")))
            continue
        weights = weights.ljust(align(len(weights)), b"\0")
        rows.append(m.StateRow(offset, size, len(weights), 0))
        weights += state.initial.ljust(size, b"\0")
    return tuple(rows), weights


def _over_steps(graph: KernelGraph) -> bool:
    """Return whether the program repeats steps: in a loop of nodes with weights, or in a kernel that has one step per row."""
    for node in graph.nodes:
        roles = abi_of(node.kernel).operands
        keeps = any(role in STATE_ROLES for role in roles)
        if ("weights" in roles and node.loop >= 0) or (keeps and graph.values[node.output].shape[1] > 1):
            return True
    return False


def emit(source: Graph, graph: KernelGraph, tasks: TaskList, target: Target, *, profiling: bool = False) -> m.Program:
    """Return the program of one NeutronGraph; `source` gives the LiteRT shapes of its inputs and outputs."""
    rows: list[m.TensorRow] = []
    for is_output, indices in ((False, graph.caller_inputs), (True, graph.caller_outputs)):
        tensors = source.outputs if is_output else source.inputs
        for k, (value_index, tensor) in enumerate(zip(indices, tensors, strict=True)):
            v = graph.values[value_index]
            shape = source.tensors[tensor].shape
            rows.append(m.TensorRow(is_output, k, v.dtype, shape, v.bytes, v.scale, v.zero_point))
    items: list[m.Instruction] = []
    for task in tasks.tasks:
        if isinstance(task, Loop):
            items.append(m.Loop(task.iterations, tuple(_step(graph, tasks, step) for step in task.body)))
        else:
            items.append(_step(graph, tasks, task))
    states, weights = _states(graph, tasks.weights)
    return m.Program(
        target=target.name,
        hw_version=target.hw_version,
        cores=target.cores,
        units=target.units,
        length=target.length,
        converter_version=version_tuple(),
        tensors=tuple(rows),
        instructions=tuple(items),
        weights=weights.ljust(align(max(len(weights), 1)), b"\0"),
        kernels=kernels_block(graph, target),
        scratch_bytes=tasks.scratch_bytes,
        prefetch_bytes=tasks.prefetch_bytes,
        tcm_bytes=tasks.tcm_bytes,
        profiling=profiling,
        states=states,
        solver_version=tasks.solver_version,
        over_steps=_over_steps(graph),
    )
