"""The NeutronGraph operator: adds a compiled group to a LiteRT model, and reads it back.

Inputs: the group's inputs, then the constant UINT8 tensors microcode, weights, kernels. Outputs: the group's outputs, then
scratch; with profiling also profile and debug. Attributes say again what the microcode's header says, for viewers such as
Netron; nothing that runs the operator reads them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from openneutron.errors import FormatError
from openneutron.litert.flexbuffer import encode_map
from openneutron.litert.graph import DType, Graph, Operator, Tensor
from openneutron.microcode.instructions import Program
from openneutron.microcode.table import FORMAT_VERSION

CUSTOM_CODE = "NeutronGraph"
BLOCKS = ("microcode", "weights", "kernels")


class Compiled(NamedTuple):
    """The three blocks of one NeutronGraph and the tensors it reads and writes."""

    microcode: bytes
    weights: bytes
    kernels: bytes
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def add_graph_op(
    graph: Graph, index: int, microcode: bytes, weights: bytes, program: Program, inputs: list[int], outputs: list[int]
) -> Operator:
    """Append the constants and scratch tensors to the graph and return the NeutronGraph operator."""

    def tensor(name: str, size: int, data: bytes | None = None) -> int:
        array = None if data is None else np.frombuffer(data, np.uint8)
        graph.tensors.append(Tensor(f"neutron_{index}_{name}", (max(size, 1),), DType.UINT8, None, array))
        return len(graph.tensors) - 1

    blocks = (microcode, weights, program.kernels)
    constants = [tensor(name, len(data), data) for name, data in zip(BLOCKS, blocks, strict=True)]
    spare = [tensor("scratch", program.scratch_bytes)]
    if program.profiling:
        spare += [tensor("profile", 16 * program.call_count), tensor("debug", 1)]
    return Operator(
        "CUSTOM", [*inputs, *constants], [*outputs, *spare],
        custom_code=CUSTOM_CODE, custom_options=encode_map(attributes_of(microcode, weights, program)),
    )  # fmt: skip


def attributes_of(microcode: bytes, weights: bytes, program: Program) -> dict[str, int | str]:
    """Return the attributes of the operator with these blocks."""
    return {
        "calls": program.call_count,
        "converter": f"OpenNeutron {'.'.join(map(str, program.converter_version))}",
        "format_version": FORMAT_VERSION,
        "kernels_bytes": len(program.kernels),
        "microcode_bytes": len(microcode),
        "prefetch_bytes": program.prefetch_bytes,
        "scratch_bytes": program.scratch_bytes,
        "state_bytes": program.state_bytes,
        "target": program.target,
        "weights_bytes": len(weights),
    }


def is_graph_op(op: Operator) -> bool:
    """True for a NeutronGraph operator, ours or NXP's."""
    return op.code == "CUSTOM" and op.custom_code == CUSTOM_CODE


def blocks_of(graph: Graph, op: Operator, *, outputs: int, where: str = "") -> Compiled:
    """The blocks of a NeutronGraph operator; `outputs` is how many of its outputs belong to the graph."""
    if len(op.inputs) < len(BLOCKS):
        raise FormatError(f"NeutronGraph has {len(op.inputs)} inputs, it needs {len(BLOCKS)} constants", where=where)
    data: list[bytes] = []
    for name, tensor in zip(BLOCKS, op.inputs[-len(BLOCKS) :], strict=True):
        array = graph.tensors[tensor].data if tensor >= 0 else None
        if array is None:
            raise FormatError(f"the {name} of a NeutronGraph is not a constant tensor", where=where)
        data.append(array.tobytes())
    microcode, weights, kernels = data
    return Compiled(microcode, weights, kernels, tuple(op.inputs[: -len(BLOCKS)]), tuple(op.outputs[:outputs]))
