"""Proves each delegate of a `.pte` against the LiteRT model of its partition, both kept in the debug bundle."""

from __future__ import annotations

from collections.abc import Callable

from openneutron.certify.prove import Proof, prove
from openneutron.certify.read.litert import read_model
from openneutron.certify.read.pte import delegates
from openneutron.certify.refused import Refused


def prove_program(data: bytes, part: Callable[[str], bytes]) -> list[Proof]:
    """One proof per delegate; `part` gives the files `partition_N.tflite` and `partition_N_converted.tflite`.

    The converted model is proved against the partition's, and its blocks must be those in the `.pte`, byte for byte.

    Example:
        >>> prove_program(Path("model.pte").read_bytes(), lambda name: (bundle / name).read_bytes())
    """
    proofs = []
    for number, blocks in enumerate(delegates(data)):
        converted = part(f"partition_{number}_converted.tflite")
        proofs.append(prove(converted, part(f"partition_{number}.tflite")))
        graph = read_model(converted)[0]
        found = [op for op in graph.operators if op.custom == b"NeutronGraph"]
        if len(found) != 1:
            raise Refused(f"delegate {number}: its converted model has {len(found)} NeutronGraphs")
        for name, index, block in zip(("microcode", "weights", "kernels"), found[0].inputs[-3:], blocks, strict=True):
            kept = graph.tensors[index].data
            if kept is None or bytes(kept) != block:
                raise Refused(f"delegate {number}: its {name} is not that of the debug bundle")
    if not proofs:
        raise Refused("the program has no Neutron delegate")
    return proofs
