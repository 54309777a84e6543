"""The container of microcode, ours or NXP's: sizes and counts of its header, without looking at the code itself.

Words of the header are little-endian 32-bit numbers; word 1 identifies the converter. The words behind the sizes come in two
layouts, plain and profiling, which the outputs of the NeutronGraph operator tell apart (scratch alone, or scratch,
profile and debug).

Example:
    >>> [c.scratch_bytes for _, c in graphs_of(read_model(Path("converted.tflite").read_bytes()))]
    [40960]
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from openneutron.errors import FormatError
from openneutron.litert.graph import Graph, Model, Operator
from openneutron.microcode.graph_op import BLOCKS, blocks_of, is_graph_op
from openneutron.microcode.table import ALIGNMENT, MAGIC, VERSION_WORD

_HEADER = struct.Struct("<15I")  # words 0-14: all that both layouts need
_PROFILE_MASK = 0x7FFF_FFFF  # the top bit of the profile size is a flag
# Outputs behind the graph's own: scratch; with profiling scratch, profile and debug.
SPARE_OUTPUTS = {False: 1, True: 3}


@dataclass(frozen=True)
class Container:
    """The header of one NeutronGraph; `calls` is None in the profiling layout, which does not count them."""

    version_word: int
    profiling: bool
    microcode_bytes: int
    weights_bytes: int
    kernels_bytes: int
    scratch_bytes: int
    sram_scratch_bytes: int
    profile_bytes: int
    debug_bytes: int
    inputs: int
    outputs: int
    calls: int | None

    @property
    def made_by(self) -> str:
        """ "open" for OpenNeutron's microcode, "nxp" for every other version word."""
        return "open" if self.version_word == VERSION_WORD else "nxp"


def is_microcode(data: bytes) -> bool:
    """True when the bytes begin with the container's magic, ours or NXP's."""
    return len(data) >= 4 and int.from_bytes(data[:4], "little") == MAGIC


def decode_container(microcode: bytes, *, profiling: bool = False, where: str = "microcode") -> Container:
    """The header of a microcode block; `profiling` says which layout its words have.

    Example:
        >>> decode_container(block).inputs
        1
    """
    if len(microcode) < _HEADER.size:
        raise FormatError(f"{len(microcode)} bytes are too few for a header of {_HEADER.size}", where=where)
    words = _HEADER.unpack_from(microcode)
    if words[0] != MAGIC:
        raise FormatError(f"word 0 at byte 0 is 0x{words[0]:08x}, not the magic 0x{MAGIC:08x}", where=where)
    # A block may be padded to the next 16 bytes, as payloads are.
    if not words[6] <= len(microcode) < words[6] + ALIGNMENT:
        raise FormatError(
            f"word 6 at byte 24 says {words[6]} bytes of microcode, the block has {len(microcode)}", where=where
        )
    if profiling:
        scratch, profile, debug, sram, inputs, outputs = words[9:15]
        calls = None
    else:
        scratch, sram, inputs, outputs, calls = words[9:14]
        profile = debug = 0
    return Container(
        version_word=words[1],
        profiling=profiling,
        microcode_bytes=words[6],
        weights_bytes=words[7],
        kernels_bytes=words[8],
        scratch_bytes=scratch,
        sram_scratch_bytes=sram,
        profile_bytes=profile & _PROFILE_MASK,
        debug_bytes=debug,
        inputs=inputs,
        outputs=outputs,
        calls=calls,
    )


def container_of(graph: Graph, op: Operator, *, where: str = "NeutronGraph") -> Container:
    """The header of a NeutronGraph operator, in the layout that its inputs and outputs agree with."""
    blocks = blocks_of(graph, op, outputs=0, where=where)
    inputs = len(op.inputs) - len(BLOCKS)
    found = [decode_container(blocks.microcode, profiling=kind, where=where) for kind in SPARE_OUTPUTS]
    for container in found:
        if (container.inputs, container.outputs + SPARE_OUTPUTS[container.profiling]) == (inputs, len(op.outputs)):
            _check_blocks(container, blocks.weights, blocks.kernels, where)
            _check_spares(graph, op, container, where)
            return container
    plain = found[0]
    raise FormatError(
        f"the microcode has {plain.inputs} inputs and {plain.outputs} outputs, the operator {inputs} and "
        f"{len(op.outputs)} with scratch",
        where=where,
    )


def _check_blocks(container: Container, weights: bytes, kernels: bytes, where: str) -> None:
    stated = {"weights": (7, container.weights_bytes, weights), "kernels": (8, container.kernels_bytes, kernels)}
    for name, (word, size, block) in stated.items():
        # NXP's converter writes one byte for an empty block, because no constant tensor may be empty.
        if size != len(block) and not (size == 0 and len(block) == 1):
            raise FormatError(
                f"word {word} at byte {4 * word} says {size} bytes of {name}, the block has {len(block)}", where=where
            )


def _check_spares(graph: Graph, op: Operator, container: Container, where: str) -> None:
    """Raise if an operator reads scratch, profile or debug, or if they are outputs of the model."""
    spares = set(op.outputs[container.outputs :])
    for position, index in enumerate(graph.outputs):
        if index in spares:
            raise FormatError(
                f"output {position} of the model, tensor {index} ({graph.tensors[index].name!r}), is working memory of "
                "this NeutronGraph: nothing makes it",
                where=where,
            )
    for number, reader in enumerate(graph.operators):
        for index in reader.inputs:
            if index in spares:
                raise FormatError(
                    f"operator {number} ({reader.label}) reads tensor {index} ({graph.tensors[index].name!r}), which is "
                    "working memory of this NeutronGraph: nothing makes it",
                    where=where,
                )


def graphs_of(model: Model, *, where: str = "model") -> list[tuple[Operator, Container]]:
    """Every NeutronGraph of the main graph with its header, in execution order."""
    graph = model.main
    return [
        (op, container_of(graph, op, where=f"{where}, operator {index}"))
        for index, op in enumerate(graph.operators)
        if is_graph_op(op)
    ]


def io_bytes(graph: Graph, op: Operator, container: Container) -> int:
    """Bytes of a NeutronGraph's inputs and outputs, without constants and scratch."""
    tensors = [*op.inputs[: -len(BLOCKS)], *op.outputs[: container.outputs]]
    return sum(graph.tensors[t].nbytes for t in tensors)
