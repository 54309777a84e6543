"""The part of a compiled file that the open runtime runs: its one NeutronGraph, and what the application does around it.

Example:
    >>> model = open_model(program.data, "model.tflite")
    >>> model.border.inputs, model.around
    (('image',), ('DEQUANTIZE',))
"""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.cli.inputs.blocks import blocks_of_file
from openneutron.cli.inputs.payloads import bordered_payload
from openneutron.errors import OptionError
from openneutron.executorch.deliver.embed import Border, numbered_border
from openneutron.files import kind_of
from openneutron.litert.graph import DType, Graph, Operator
from openneutron.litert.read import read_model
from openneutron.microcode.graph_op import is_graph_op
from openneutron.microcode.payload import Payload, parse_payload
from openneutron.microcode.pte import computing_methods, read_plan
from openneutron.microcode.reorder import in_argument_order

# What an application does itself, or not at all when it works with stored numbers: conversions at both ends of the program.
_LITERT_ENDS = ("QUANTIZE", "DEQUANTIZE")
_PTE_ENDS = ("quantize_per_tensor", "dequantize_per_tensor", "_clone_dim_order", "clone", "_to_dim_order_copy")


@dataclass(frozen=True)
class OpenModel:
    """A payload with arguments in the model's order.

    `around` are the operators at its ends that are left out, `methods` those of a program besides `forward`.
    """

    data: bytes
    payload: Payload
    border: Border
    around: tuple[str, ...]
    where: str
    methods: tuple[str, ...] = ()


def open_model(data: bytes, where: str) -> OpenModel:
    """Return what the open runtime runs of a compiled .tflite or .pte file; an `OptionError` says what it cannot run."""
    kind = kind_of(data)
    if kind not in ("tflite", "pte"):
        raise OptionError("a project is made from a compiled .tflite or .pte file, or a model to compile", where=where)
    graphs = blocks_of_file(data, where)
    if any(blocks.container.made_by == "nxp" for blocks in graphs):
        raise OptionError(
            "NXP's converter made it, and the open runtime does not run NXP's microcode", where=where,
            hint="give the model that it was made from, and this file with --npu-model",
        )  # fmt: skip
    if len(graphs) != 1:
        raise OptionError(
            f"it has {len(graphs)} NeutronGraphs; the open runtime runs a model that is one", where=where,
            hint="`openneutron compile` says what stays outside, and why",
        )  # fmt: skip
    around = _around_litert(data, where) if kind == "tflite" else _around_program(data, where)
    place, blob, border = bordered_payload(data, where, None)
    blob = in_argument_order(blob, where=place)
    payload = parse_payload(blob, where=place)
    if not payload.input_map or not payload.output_map:
        raise OptionError("the NeutronGraph has no inputs or no outputs, so there is nothing to test", where=where)
    methods = computing_methods(data, where=where)[1:] if kind == "pte" else ()
    return OpenModel(blob, payload, border or numbered_border(payload), around, where, methods)


def _around_litert(data: bytes, where: str) -> tuple[str, ...]:
    graph = read_model(data, source=where).main
    others = [op for op in graph.operators if not is_graph_op(op)]
    _refuse([op.custom_code or op.code for op in others if not _is_end(graph, op)], where)
    return tuple(op.code for op in others)


def _is_end(graph: Graph, op: Operator) -> bool:
    """Whether the operator only turns the model's real numbers into stored ones, or back."""
    if op.code not in _LITERT_ENDS:
        return False
    read, written = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if op.code == "QUANTIZE":
        return op.inputs[0] in graph.inputs and read.dtype is DType.FLOAT32
    return op.outputs[0] in graph.outputs and written.dtype is DType.FLOAT32


def _around_program(data: bytes, where: str) -> tuple[str, ...]:
    plan = read_plan(data, where=where)
    _refuse([name for name in plan.operators if _short(name) not in _PTE_ENDS], where)
    return tuple(plan.operators)


def _short(name: str) -> str:
    return name.rpartition("::")[2].partition(".")[0]


def _refuse(outside: list[str], where: str) -> None:
    if outside:
        raise OptionError(
            f"{', '.join(dict.fromkeys(outside))} would stay outside of the NeutronGraph, and the open runtime has nothing "
            "that runs it", where=where, hint="`openneutron compile` says why, and what to change",
        )  # fmt: skip
