"""Sorts the inputs and outputs of a payload in the order of its arguments, for callers that do not read its maps.

A delegate finds its arguments by the maps of the payload's header. An application that calls the driver itself hands over
arrays of pointers, which the driver reads in the order of the microcode's tensors.

Example:
    >>> parse_payload(in_argument_order(data, where="model.pte"), where="model.pte").output_map
    (0, 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from openneutron.microcode.decode import decode
from openneutron.microcode.encode import encode_blocks
from openneutron.microcode.instructions import Call, Dma, Instruction, Loop, Operand, Program, Step
from openneutron.microcode.payload import Payload, build_payload, parse_payload
from openneutron.microcode.table import Region


def in_argument_order(data: bytes, *, where: str) -> bytes:
    """Return the payload with tensors sorted by argument, or the same bytes where they are sorted already.

    NXP's microcode cannot be rewritten, so its payloads are returned unchanged. Kernels must be registered.
    """
    payload = parse_payload(data, where=where)
    if payload.converter != "open" or is_sorted(payload):
        return data
    program = decode(payload.microcode, payload.weights, payload.kernels)
    inputs, outputs = _sort_order(payload.input_map), _sort_order(payload.output_map)
    microcode, weights = encode_blocks(reorder(program, inputs, outputs))
    identity = payload.identity
    return build_payload(
        microcode, weights, payload.kernels,
        [payload.input_formats[row] for row in inputs], [payload.output_formats[row] for row in outputs],
        [payload.input_map[row] for row in inputs], [payload.output_map[row] for row in outputs],
        payload.n_input_args, payload.payload_version, payload.target or program.target, "open",
        identity.converter_version if identity else ".".join(map(str, program.converter_version)),
    )  # fmt: skip


def is_sorted(payload: Payload) -> bool:
    """Return whether the driver's order of inputs and outputs is that of the arguments."""
    return all(list(one) == sorted(one) for one in (payload.input_map, payload.output_map))


def reorder(program: Program, inputs: Sequence[int], outputs: Sequence[int]) -> Program:
    """Return the program with its inputs and outputs reordered: its input k is the given one's input `inputs[k]`.

    Example:
        >>> reorder(program, [0], [1, 0]).tensors[1] == program.tensors[2]
        True
    """
    sides = [[row for row in program.tensors if row.is_output is kind] for kind in (False, True)]
    places = {
        Region.INPUT: {old: new for new, old in enumerate(inputs)},
        Region.OUTPUT: {old: new for new, old in enumerate(outputs)},
    }
    tensors = tuple(
        replace(side[old], index=new)
        for side, order in zip(sides, (inputs, outputs), strict=True)
        for new, old in enumerate(order)
    )

    def step(item: Step) -> Step:
        if isinstance(item, Call):
            return replace(item, operands=tuple(map(operand, item.operands)))
        if isinstance(item, Dma):
            known = places.get(item.source_region) or places.get(
                item.target_region
            )  # at most one of them is a caller's
            return item if known is None else replace(item, source_index=known[item.source_index])
        return item

    def operand(one: Operand) -> Operand:
        # An absent operand is all zeros and stays so.
        known = places.get(one.region) if one.channels else None
        return one if known is None else one._replace(index=known[one.index])

    def instruction(item: Instruction) -> Instruction:
        return replace(item, body=tuple(map(step, item.body))) if isinstance(item, Loop) else step(item)

    return replace(program, tensors=tensors, instructions=tuple(map(instruction, program.instructions)))


def _sort_order(places: Sequence[int]) -> list[int]:
    """Return the positions of rows in the order of their arguments."""
    return sorted(range(len(places)), key=places.__getitem__)
