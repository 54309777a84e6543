"""Certificate: a verified schedule written out with everything needed to prove it again, without the compiler.

Two halves. The promise: which tensors there are, and which rows of which tensors each node reads and writes. The plan: buffers
with their addresses, and calls, copies and waits in order. `openneutron.certify.checker` replays the plan against the
promise; it is stand-alone and knows nothing but this document. Digests tie the document to the compiled blocks.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from openneutron.compiler.l1 import ITEM_BYTES, KernelGraph, Node, Value
from openneutron.compiler.l2 import Call, Dma, Loop, Operand, Step, TaskList
from openneutron.compiler.plan.constants import constants_of
from openneutron.machine.targets import Target
from openneutron.microcode.encode import align
from openneutron.microcode.table import Region

FORMAT = "openneutron schedule certificate"
VERSION = 1


def _value(value: Value, index: int, constants: dict[int, int]) -> dict[str, Any]:
    n, h, w, c = value.shape
    item = ITEM_BYTES[value.dtype]
    pixel = c * item
    a = value.alias
    place = (a.root, a.offset, a.plane, a.pitch, a.pixel) if a else (index, 0, h * w * pixel, w * pixel, pixel)
    return {
        "name": value.name,
        "images": n,
        "rows": h,
        "pixels": w,
        "pixel_bytes": pixel,
        "place": dict(zip(("root", "offset", "plane", "pitch", "pixel"), place, strict=True)),
        "running": value.accumulator,
        "constant": None if value.data is None else constants[id(value.data)],
    }


def _node(node: Node, constants: dict[int, int]) -> dict[str, Any]:
    reads, fixed = [], []
    for position, operand in enumerate(node.operands):
        if isinstance(operand, int) and operand != node.output:
            demand = (node.demand or {}).get(position)
            rows = None
            if demand is not None:
                rows = {name: getattr(demand, name) for name in ("stride", "divide", "before", "extent")}
            reads.append({"operand": position, "value": operand, "rows": rows, "in_place": position in node.in_place})
        elif isinstance(operand, np.ndarray):
            fixed.append({"operand": position, "offset": constants[id(operand)], "bytes": operand.size})
    writes = next(p for p, operand in enumerate(node.operands) if isinstance(operand, int) and operand == node.output)
    return {
        "kernel": node.kernel,
        "reads": reads,
        "constants": fixed,
        "writes": {"operand": writes, "value": node.output},
    }


def _operand(operand: Operand | None) -> dict[str, int] | None:
    if operand is None:
        return None
    return {
        "buffer": operand.buffer,
        "offset": operand.offset,
        "plane": operand.plane,
        "pitch": operand.pitch,
        "ring": operand.ring,
        "pixel": operand.pixel,
        "pixels": operand.width,
        "pixel_bytes": operand.channels * ITEM_BYTES[operand.dtype],
    }


def _step(step: Step) -> dict[str, Any]:
    if isinstance(step, Call):
        return {
            "call": step.node,
            "first_row": step.first_row,
            "rows": step.rows,
            "row_step": step.row_step,
            "operands": [_operand(operand) for operand in step.operands],
        }
    if isinstance(step, Dma):
        ends = {"source": step.source, "source_offset": step.source_offset}
        ends |= {"target": step.target, "target_offset": step.target_offset, "bytes": step.bytes}
        return {"copy": step.channel, **ends}
    return {"wait": step.channel}


def graph_certificate(graph: KernelGraph, tasks: TaskList, target: Target, blocks: dict[str, bytes]) -> dict[str, Any]:
    """The certificate of one NeutronGraph; `blocks` are its compiled blocks by name, of which digests are kept."""
    block = constants_of(graph)
    constants: dict[int, int] = {}
    for node in graph.nodes:
        for operand in node.operands:
            data = graph.values[graph.root(operand)].data if isinstance(operand, int) else operand
            if data is not None:
                constants[id(data)] = block.offset(data)
    used = {id(value.data) for value in graph.values if value.data is not None} & constants.keys()
    sizes = {
        "scratch": tasks.scratch_bytes,
        "prefetch": tasks.prefetch_bytes,
        "tcm": tasks.tcm_bytes,
        "weights": len(tasks.weights),
        "state": sum(align(len(state.initial)) for state in graph.states),
    }
    for b in tasks.buffers:
        if b.region in (Region.INPUT, Region.OUTPUT):
            sizes[f"{b.region.name.lower()} {b.index}"] = b.size
    plan: list[dict[str, Any]] = []
    for task in tasks.tasks:
        if isinstance(task, Loop):
            plan.append({"loop": task.iterations, "body": [_step(step) for step in task.body]})
        else:
            plan.append(_step(task))
    return {
        "target": target.name,
        "alignment": target.alignment,
        "limits": {"sram": target.sram_bytes, "tcm": target.tcm_bytes},
        "digests": {name: hashlib.sha256(data).hexdigest() for name, data in blocks.items()},
        "values": [
            _value(value, index, constants) if value.data is None or id(value.data) in used else None
            for index, value in enumerate(graph.values)
        ],
        "inputs": graph.caller_inputs,
        "outputs": [graph.root(value) for value in graph.caller_outputs],
        "states": [
            {
                "name": state.name,
                "offset": offset,
                "before": graph.inputs[state.input],
                "after": graph.inputs[state.input] if state.output < 0 else graph.root(graph.outputs[state.output]),
            }
            for state, offset in zip(graph.states, graph.state_offsets(), strict=True)
        ],
        "nodes": [_node(node, constants) for node in graph.nodes],
        "regions": sizes,
        "buffers": [
            {
                "name": b.name,
                "region": f"{b.region.name.lower()} {b.index}"
                if b.region in (Region.INPUT, Region.OUTPUT)
                else b.region.name.lower(),
                "offset": max(b.offset, 0),
                "bytes": b.size,
            }
            for b in tasks.buffers
        ],
        "tasks": plan,
    }


def certificate_json(graphs: list[dict[str, Any]], source: str) -> str:
    """The whole document, one task per line so that people and diffs can read it.

    Example:
        >>> Path("model.json").write_text(certificate_json([graph_certificate(graph, tasks, target, blocks)], "m.tflite"))
    """

    def lines(items: list[Any]) -> str:
        return (
            "[\n" + ",\n".join("   " + json.dumps(item, ensure_ascii=False) for item in items) + "]" if items else "[]"
        )

    parts = []
    for graph in graphs:
        fields = [
            f'  "{key}": {lines(value) if isinstance(value, list) else json.dumps(value)}'
            for key, value in graph.items()
        ]
        parts.append(" {\n" + ",\n".join(fields) + "}")
    head = f'"format": "{FORMAT}", "version": {VERSION}, "source": {json.dumps(source, ensure_ascii=False)}'
    return f'{{{head}, "graphs": [\n' + ",\n".join(parts) + "]}\n"
