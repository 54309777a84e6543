"""GATHER and EMBEDDING_LOOKUP with constant or run-time indices."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.check_indices import checked_indices, index_type
from openneutron.compiler.kernels.common import ACTIVATIONS, not_empty
from openneutron.compiler.kernels.movement import numbers, same_moved_type
from openneutron.compiler.l1 import Node
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.verdict import OK, Verdict, limit, no


@dataclass(frozen=True)
class GatherParams:
    """Parameters of a `gather` call; all operands are dense."""

    batches: int = param("leading elements that input and indices share", grows=2)
    outer: int = param("input elements between them and the axis", grows=4)
    axis: int = param("size of the axis; an index outside it picks the nearest end", grows=2)
    count: int = param("indices per batch", grows=2)
    slice_bytes: int = param("bytes behind the axis, copied for each index", grows=4)


ABI = register(
    KernelAbi(
        id=29,
        name="gather",
        abi=1,
        operands=("input", "indices", "output"),
        params=GatherParams,
        cost="element",
        meaning="slices of the input picked by INT32 or INT64 indices",
        dense=True,
    )
)


def _axes(op: OpSignature) -> tuple[int, int]:
    """Return axis and number of batch dimensions, as given."""
    return (int(op.options.axis), int(op.options.batchDims)) if op.options else (0, 0)


@limit("axis and batch_dims must fit the shapes")
def axes_fit(op: OpSignature, target: Target) -> Verdict:
    x, indices, y = op.inputs[0], op.inputs[1], op.outputs[0]
    assert x is not None and indices is not None
    axis, batch = _axes(op)
    rank = len(x.shape)
    given = f"axis {axis}, batch_dims {batch}, shapes {list(x.shape)} and {list(indices.shape)}"
    if not -rank <= axis < rank or not -len(indices.shape) <= batch <= len(indices.shape):
        return no(given)
    axis, batch = axis % rank, batch + len(indices.shape) if batch < 0 else batch
    if batch > axis or x.shape[:batch] != indices.shape[:batch]:
        return no(given)
    expected = (*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :])
    return OK if expected == y.shape else no(f"{given} do not give {list(y.shape)}")


@limit("constant indices must lie inside the axis")
def indices_inside(op: OpSignature, target: Target) -> Verdict:
    x, given = op.inputs[0], numbers(op, 1)
    assert x is not None
    size = x.shape[_axes(op)[0]]
    wrong = [index for index in given or () if not 0 <= index < size]
    return OK if not wrong else no(f"index {wrong[0]} of {size}")


@limit("ids must be a vector, and the output the table's rows for them, of its type: INT8, UINT8 or INT16")
def rows_fit(op: OpSignature, target: Target) -> Verdict:
    ids, table, y = op.inputs[0], op.inputs[1], op.outputs[0]
    assert ids is not None and table is not None
    if table.dtype not in ACTIVATIONS or y.dtype is not table.dtype:
        return no(f"the table is {table.dtype}, the output {y.dtype}")
    expected = (*ids.shape, *table.shape[1:])
    fits = len(ids.shape) == 1 and len(table.shape) > 1 and expected == y.shape
    return OK if fits else no(f"ids {list(ids.shape)} of table {list(table.shape)} do not give {list(y.shape)}")


@limit("constant ids must be rows of the table")
def ids_inside(op: OpSignature, target: Target) -> Verdict:
    table = op.inputs[1]
    assert table is not None
    wrong = [one for one in numbers(op, 0) or () if not 0 <= one < table.shape[0]]
    return OK if not wrong else no(f"id {wrong[0]} of {table.shape[0]}")


@serves("GATHER", limits=(same_moved_type, not_empty, index_type, axes_fit, indices_inside))
def legalize(state: Legalizer) -> None:
    """Emit one node on whole tensors; indices known only at run time are checked first."""
    x, indices = state.signature.inputs[0], state.signature.inputs[1]
    assert x is not None and indices is not None
    axis, batch = _axes(state.signature)
    axis %= len(x.shape)
    batch += len(indices.shape) if batch < 0 else 0
    params = GatherParams(
        batches=prod(x.shape[:batch]),
        outer=prod(x.shape[batch:axis]),
        axis=x.shape[axis],
        count=prod(indices.shape[batch:]),
        slice_bytes=prod(x.shape[axis + 1 :]) * x.dtype.itemsize,
    )
    emit_gather(state, params, data=0, indices=1)


@serves("EMBEDDING_LOOKUP", limits=(not_empty, index_type, rows_fit, ids_inside))
def legalize_lookup(state: Legalizer) -> None:
    """Emit the node of a GATHER along the first axis; this operator has the ids first."""
    ids, table = state.signature.inputs[0], state.signature.inputs[1]
    assert ids is not None and table is not None
    width = prod(table.shape[1:]) * table.dtype.itemsize
    emit_gather(state, GatherParams(1, 1, table.shape[0], prod(ids.shape), width), data=1, indices=0)


def emit_gather(state: Legalizer, params: GatherParams, *, data: int, indices: int = -1, known: int = -1) -> None:
    """Emit the node that reads the indices of an input, which are checked, or a constant value."""
    output = state.output()
    picked = known if known >= 0 else checked_indices(state, indices, (params.axis,))
    state.emit(Node(ABI.name, [state.value(data), picked, output], output, params))
