"""Checks of indices that are known only at run time; no operator of its own; those that read such indices emit it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from openneutron.compiler.l1 import Node, Value
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.signature import OpSignature
from openneutron.litert.graph import DType
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.verdict import OK, Verdict, limit, no

LIMITS = 8  # of one call: as many as a tensor has dimensions


@dataclass(frozen=True)
class CheckIndicesParams:
    """Parameters of a `check_indices` call; both operands are dense."""

    count: int = param("indices", grows=2)
    period: int = param("limits in use; index i has limit i mod period")
    limits: tuple[int, ...] = param("the first index that does not exist", LIMITS, grows=2)


ABI = register(
    KernelAbi(
        id=49,
        name="check_indices",
        abi=1,
        operands=("indices", "output"),
        params=CheckIndicesParams,
        cost="element",
        meaning="a copy of INT32 or INT64 indices; a run in which one lies outside [0, limit) ends with error INDEX",
        dense=True,
    )
)


# The input that holds the indices, where it is not the second one.
_POSITIONS = {"DYNAMIC_UPDATE_SLICE": 2, "EMBEDDING_LOOKUP": 0}


@limit("indices and positions must be INT32 or INT64")
def index_type(op: OpSignature, target: Target) -> Verdict:
    indices = op.input(_POSITIONS.get(op.code, 1))
    if indices is None or indices.dtype not in (DType.INT32, DType.INT64):
        return no(f"they are {indices.dtype if indices else 'absent'}")
    return OK


def checked_indices(state: Legalizer, position: int, limits: tuple[int, ...]) -> int:
    """Return the indices at an input position, checked at run time where they are not constant.

    The same indices with the same limits are checked once.
    """
    given = state.value(position)
    source = state.graph.values[given]
    if source.data is not None:
        return given
    for node in state.graph.nodes:
        if node.kernel == ABI.name and node.operands[0] == given and node.params.limits[: len(limits)] == limits:
            return node.output
    made = state.graph.add_value(Value(f"{source.name}, checked", source.shape, source.dtype, tensor=source.tensor))
    params = CheckIndicesParams(prod(source.shape), len(limits), limits + (1,) * (LIMITS - len(limits)))
    state.emit(Node(ABI.name, [given, made], made, params))
    return made
