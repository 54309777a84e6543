"""Store: how the constants of a program are described to its file, and which form of each is the smallest.

Forms are chosen before the plan is made, because weights are loaded in the bytes they are stored in; where constants lie, the
plan and the kernels know as plain bytes. See `openneutron.microcode.storage`.
"""

from __future__ import annotations

import numpy as np

from openneutron.compiler.front.fuse import CODE_WEIGHTS, PACK_CODE
from openneutron.compiler.l1 import KernelGraph, Node
from openneutron.compiler.names import abi_of
from openneutron.compiler.plan.constants import Constants, constants_of
from openneutron.machine.targets import Target
from openneutron.microcode.encode import align
from openneutron.microcode.instructions import Program
from openneutron.microcode.storage.sections import Section, choose, flat, plain_bytes, raw, table
from openneutron.microcode.table import Packing, Storage
from openneutron.records import replace

_WORTH = 32  # a host decodes into memory for all constants: not for the sake of less than this part of them
_DENSE = ("conv2d", "transpose_conv2d", "fully_connected")
_LANES = ("depthwise_conv2d",)


def _described(graph: KernelGraph, node: Node, position: int, size: int) -> Section:
    """What the constant at an operand's position is, before a form is chosen."""
    roles = [role.rstrip("?") for role in abi_of(node.kernel).operands]
    kind = node.kernel.removesuffix("16")
    if kind not in _DENSE and kind not in _LANES:
        return flat(size) if roles[position] == "weights" else raw(size)
    outputs = node.seen(roles.index("output"), graph.values[node.output].shape)[3]
    if roles[position] == "table":
        return table(size, 3 if kind == node.kernel else 4, outputs)  # 16-bit activations: a bias of two words
    if roles[position] != "weights":
        return raw(size)
    first = node.operands[0]
    assert isinstance(first, int)
    inputs = node.seen(0, graph.values[first].shape)[3]
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


def _sections(graph: KernelGraph, constants: Constants, target: Target) -> tuple[Section, ...]:
    """Each constant in its smallest form; none where next to nothing is coded."""
    weights = memoryview(constants.block)  # parts of it are no copies
    described: dict[int, Section] = {}
    for node in graph.nodes:
        for position, operand in enumerate(node.operands):
            if isinstance(operand, np.ndarray):
                described.setdefault(constants.offset(operand), _described(graph, node, position, operand.size))
    chosen: list[Section] = []
    reached = 0
    for at, section in sorted(described.items()):
        if section.storage is not Storage.RAW:
            form = choose(section, weights[at : at + section.plain], target.units, target.length)
            if form.storage is not Storage.RAW:
                if at > reached:
                    chosen.append(raw(at - reached))
                chosen.append(form)
                reached = align(at + section.plain)
    coded = sum(section.plain for section in chosen if section.storage is not Storage.RAW)
    if coded * _WORTH < len(weights):
        return ()
    if reached < len(weights):
        chosen.append(raw(len(weights) - reached))
    assert plain_bytes(chosen) == len(weights)
    return tuple(chosen)


def stored_constants(graph: KernelGraph, target: Target, switched_off: tuple[str, ...] = ()) -> Constants:
    """The constants of a graph and the forms in which they are stored.

    Example:
        >>> stored_constants(graph, target).stored()
    """
    constants = constants_of(graph)
    if CODE_WEIGHTS not in switched_off:
        constants.sections = _sections(graph, constants, target)
    return constants


def stored(program: Program, constants: Constants, switched_off: tuple[str, ...] = ()) -> Program:
    """The program with the forms in which it is stored."""
    sections = _to_the_end(constants.sections, len(program.weights))
    return replace(program, sections=sections, packed=PACK_CODE not in switched_off)


def _to_the_end(sections: tuple[Section, ...], size: int) -> tuple[Section, ...]:
    """Sections of the whole weights block: first contents of states lie behind the constants, as they are."""
    rest = size - plain_bytes(sections)
    if not sections or not rest:
        return sections
    *others, last = sections
    return (*others, raw(last.plain + rest)) if last.storage is Storage.RAW else (*sections, raw(rest))
