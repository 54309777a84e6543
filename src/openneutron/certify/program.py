"""Proves each delegate of a `.pte` against the LiteRT model of its partition, both kept in the debug bundle."""

from __future__ import annotations

from collections.abc import Callable

from openneutron.certify.prove import Proof, prove
from openneutron.certify.read.litert import Graph, read_model
from openneutron.certify.read.pte import Delegate, delegates
from openneutron.certify.refused import Refused

_NAMES = ("microcode", "weights", "kernels")


def prove_program(data: bytes, part: Callable[[str], bytes]) -> list[Proof]:
    """One proof per delegate; `part` gives the files `partition_N.tflite` and `partition_N_converted.tflite`.

    The converted model is proved against the partition's; its blocks must be those in the `.pte`, byte for byte, and the
    delegate must take arguments and give results in the partition's order.

    Example:
        >>> prove_program(Path("model.pte").read_bytes(), lambda name: (bundle / name).read_bytes())
    """
    proofs = []
    for number, delegate in enumerate(delegates(data)):
        name = f"partition_{number}_converted.tflite"
        source, converted = part(f"partition_{number}.tflite"), part(name)
        try:
            graph = read_model(converted)[0]
            proofs.append(prove(converted, source))
        except Refused as error:
            raise Refused(f"delegate {number}: {name}: {error}") from None
        try:
            _same(delegate, graph)
        except Refused as error:
            raise error.of(f"delegate {number}") from None
    if not proofs:
        raise Refused("the program has no Neutron delegate")
    return proofs


def _same(delegate: Delegate, graph: Graph) -> None:
    if [op.custom for op in graph.operators] != [b"NeutronGraph"]:
        raise Refused(f"its converted model is {len(graph.operators)} operators and not one NeutronGraph")
    (op,) = graph.operators
    for name, index, block, start in zip(_NAMES, op.inputs[-3:], delegate.blocks, delegate.starts, strict=True):
        kept = bytes(graph.tensors[index].data or b"")
        if kept != block:
            ends = min(len(kept), len(block))
            byte = next((at for at in range(ends) if kept[at] != block[at]), ends)
            raise Refused(f"its {name} is not that of the debug bundle", start + byte)
    # Not every argument need be an input of the partition: of arguments only the order is known.
    places = sorted(set(delegate.inputs))
    _same_order("argument", delegate.inputs, op.inputs[:-3], graph.inputs, places, delegate.maps)
    _same_order("result", delegate.outputs, op.outputs, graph.outputs, None, delegate.maps + len(delegate.inputs))


def _same_order(
    kind: str,
    found: tuple[int, ...],
    tensors: tuple[int, ...],
    border: tuple[int, ...],
    places: list[int] | None,
    at: int,
) -> None:
    """Does the delegate's map name the partition's inputs or outputs as its microcode numbers them?"""
    for number, (one, tensor) in enumerate(zip(found, tensors, strict=False)):
        rank = border.index(tensor) if tensor in border else len(found)
        wanted = rank if places is None else places[rank] if rank < len(places) else -1
        if one != wanted:
            raise Refused(f"{kind} {one} is handed over where it should be number {wanted}", at + number)
