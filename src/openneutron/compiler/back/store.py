"""Choose for each constant the storage form (plain or one of the codings) that takes the fewest bytes.

Forms are chosen before planning, because the time to load weights depends on their coded size. Offsets in plans and kernel
calls count plain (decoded) bytes. See `openneutron.microcode.storage`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from openneutron.compiler.front.fuse import CODE_WEIGHTS, PACK_CODE
from openneutron.compiler.kernels import abi_of
from openneutron.compiler.l1 import KernelGraph, Node
from openneutron.compiler.plan.constants import Constants, KnownWeights, constants_of
from openneutron.machine.targets import Target
from openneutron.microcode.encode import align
from openneutron.microcode.instructions import Program
from openneutron.microcode.storage.sections import Section, choose, flat, plain_bytes, raw, table
from openneutron.microcode.table import Packing, Storage

_WORTH = 32  # coding less than 1/32 of all bytes is not worth the memory that a host needs to decode them
_DENSE = ("conv2d", "transpose_conv2d", "fully_connected")
_LANES = ("depthwise_conv2d",)


def _describe_section(graph: KernelGraph, node: Node, position: int, size: int) -> Section:
    """Describe the constant at an operand's position as a section whose form is still open."""
    roles = [role.rstrip("?") for role in abi_of(node.kernel).operands]
    kind = node.kernel.removesuffix("16")
    if kind not in _DENSE and kind not in _LANES:
        return flat(size) if roles[position] == "weights" else raw(size)
    outputs = node.kernel_shape(roles.index("output"), graph.values[node.output].shape)[3]
    if roles[position] == "table":
        return table(size, 3 if kind == node.kernel else 4, outputs)  # 16-bit activations: a bias of two words
    if roles[position] != "weights":
        return raw(size)
    first = node.operands[0]
    assert isinstance(first, int)
    inputs = node.kernel_shape(0, graph.values[first].shape)[3]
    groups = getattr(node.params, "groups", 1)
    taps = getattr(node.params, "kernel_h", 1) * getattr(node.params, "kernel_w", 1)
    if kind in _LANES:
        return Section(Storage.PACKED, size, Packing.LANES, groups=1, channels=outputs, taps=taps, inputs=1)
    return Section(
        Storage.PACKED,
        size,
        Packing.DENSE,
        groups=groups,
        channels=outputs // groups,
        taps=taps,
        inputs=inputs // groups,
    )


def _sections(
    graph: KernelGraph, constants: Constants, target: Target, known: KnownWeights | None
) -> tuple[Section, ...]:
    """Return each constant in its smallest form, or no sections where coding saves next to nothing.

    What the block has from another program is stored as there.
    """
    weights = memoryview(constants.block)  # slices of a memoryview copy nothing
    described: dict[int, Section] = {}
    for node in graph.nodes:
        for position, operand in enumerate(node.operands):
            if isinstance(operand, np.ndarray):
                described.setdefault(constants.offset(operand), _describe_section(graph, node, position, operand.size))
    chosen = [] if known is None else [*known.sections]
    first = len(known.block) if known is not None else 0
    reached = first if chosen else 0
    for at, section in sorted(described.items()):
        if section.storage is not Storage.RAW and at >= first:
            form = choose(section, weights[at : at + section.plain], target.units, target.length)
            if form.storage is not Storage.RAW:
                if at > reached:
                    chosen.append(raw(at - reached))
                chosen.append(form)
                reached = align(at + section.plain)
    coded = sum(section.plain for section in chosen if section.storage is not Storage.RAW)
    if coded * _WORTH < len(weights) and not (known is not None and known.sections):
        return ()
    if reached < len(weights):
        chosen.append(raw(len(weights) - reached))
    assert plain_bytes(chosen) == len(weights)
    return tuple(chosen)


def _codes(constants: Constants, target: Target) -> bool:
    """Whether constants may be coded: a CPU decodes slowly, so there only those that its flash cannot hold plain."""
    return not target.processor or len(constants.block) > target.flash_bytes > 0


def choose_constant_forms(
    graph: KernelGraph, target: Target, switched_off: tuple[str, ...] = (), known: KnownWeights | None = None
) -> Constants:
    """Gather the constants of a graph, behind `known` ones, and choose the forms in which they are stored.

    Example:
        >>> choose_constant_forms(graph, target).coded_sizes()
    """
    constants = constants_of(graph, known)
    coded = CODE_WEIGHTS not in switched_off and _codes(constants, target)
    if coded or (known is not None and known.sections):
        constants.sections = _sections(graph, constants, target, known)
    return constants


def with_storage_forms(program: Program, constants: Constants, switched_off: tuple[str, ...] = ()) -> Program:
    """Return the program with the storage forms of its constants."""
    sections = _to_the_end(constants.sections, len(program.weights))
    return replace(program, sections=sections, packed=PACK_CODE not in switched_off)


def _to_the_end(sections: tuple[Section, ...], size: int) -> tuple[Section, ...]:
    """Extend the sections over the whole weights block: initial contents of states follow the constants, uncoded."""
    rest = size - plain_bytes(sections)
    if not sections or not rest:
        return sections
    *others, last = sections
    return (*others, raw(last.plain + rest)) if last.storage is Storage.RAW else (*sections, raw(rest))
