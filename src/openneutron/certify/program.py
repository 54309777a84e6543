"""Proves each delegate of a `.pte` against the LiteRT model of its partition; the debug bundle holds both models."""

from __future__ import annotations

import struct
from collections.abc import Callable

from openneutron.certify.prove import Proof, prove
from openneutron.certify.read.litert import Graph, read_model
from openneutron.certify.read.pte import Delegate, delegates, frame
from openneutron.certify.refused import Refused

_NAMES = ("microcode", "weights", "kernels")
FRAME = "program_frame.pte"


def prove_program(data: bytes, part: Callable[[str], bytes]) -> list[Proof]:
    """Prove every delegate; return one proof each.

    `part` returns files of the bundle: `partition_N.tflite`, `partition_N_converted.tflite` and the frame.

    The converted model is proved against the partition's; its blocks must be those in the `.pte`, byte for byte, and the
    delegate must take arguments and give results in the partition's order. All of the `.pte` but the blocks must be the frame.

    Example:
        >>> prove_program(Path("model.pte").read_bytes(), lambda name: (bundle / name).read_bytes())
    """
    proofs = []
    found = _delegates(data)
    for number, delegate in enumerate(found):
        name = f"partition_{number}_converted.tflite"
        source, converted = part(f"partition_{number}.tflite"), part(name)
        try:
            graph = read_model(converted).graphs[0]
            proofs.append(prove(converted, source))
        except Refused as error:
            raise Refused(f"delegate {number}: {name}: {error}") from None
        try:
            _check_blocks(delegate, graph)
        except Refused as error:
            raise error.of(f"delegate {number}") from None
    if not proofs:
        raise Refused("the program has no Neutron delegate")
    _check_frame(frame(data, found), part(FRAME))
    return proofs


def _delegates(data: bytes) -> list[Delegate]:
    try:
        return delegates(data)
    except (LookupError, ValueError, struct.error) as error:
        if isinstance(error, Refused):
            raise
        raise Refused(f"the program makes no sense ({error})") from None


def _check_frame(found: bytes, wanted: bytes) -> None:
    """Refuse a program that differs from the frame outside the delegates' blocks, at the first byte that differs."""
    if found == wanted:
        return
    ends = min(len(found), len(wanted))
    byte = next((at for at in range(ends) if found[at] != wanted[at]), ends)
    raise Refused(f"the program around the delegates is not {FRAME} of the debug bundle", byte)


def _check_blocks(delegate: Delegate, graph: Graph) -> None:
    if [op.custom for op in graph.operators] != [b"NeutronGraph"]:
        raise Refused(f"its converted model is {len(graph.operators)} operators and not one NeutronGraph")
    (op,) = graph.operators
    for name, index, block, start in zip(_NAMES, op.inputs[-3:], delegate.blocks, delegate.starts, strict=True):
        kept = bytes(graph.tensors[index].data or b"")
        if kept != block:
            ends = min(len(kept), len(block))
            byte = next((at for at in range(ends) if kept[at] != block[at]), ends)
            raise Refused(f"its {name} is not that of the debug bundle", start + byte)
    # Some arguments may not be inputs of the partition, so only the order of arguments can be compared.
    places = sorted(set(delegate.inputs))
    _check_order("argument", delegate.inputs, op.inputs[:-3], graph.inputs, places, delegate.maps)
    _check_order("result", delegate.outputs, op.outputs, graph.outputs, None, delegate.maps + len(delegate.inputs))


def _check_order(
    kind: str,
    found: tuple[int, ...],
    tensors: tuple[int, ...],
    border: tuple[int, ...],
    places: list[int] | None,
    at: int,
) -> None:
    """Refuse a delegate whose map orders inputs or outputs otherwise than the partition."""
    for number, (one, tensor) in enumerate(zip(found, tensors, strict=False)):
        rank = border.index(tensor) if tensor in border else len(found)
        wanted = rank if places is None else places[rank] if rank < len(places) else -1
        if one != wanted:
            raise Refused(f"{kind} {one} is handed over where it should be number {wanted}", at + number)
