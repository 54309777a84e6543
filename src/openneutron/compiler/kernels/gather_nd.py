"""GATHER_ND: slices picked by coordinates, as a `gather` along the coordinates' dimensions joined to one axis.

```text
x [4, 5, 6], coordinates [[1, 2], [3, 0]]     →     x as [20, 6], indices [7, 15]
```
"""

from __future__ import annotations

from math import prod

import numpy as np

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.check_indices import index_type
from openneutron.compiler.kernels.common import not_empty
from openneutron.compiler.kernels.gather import GatherParams, emit_gather
from openneutron.compiler.kernels.movement import same_moved_type
from openneutron.compiler.l1 import Value
from openneutron.compiler.legalizer import Legalizer, shape4
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.microcode.table import ElementType
from openneutron.verdict import OK, Verdict, limit, no


@limit("the last dimension of the indices must be 1 to the input's rank, and the output one slice for each")
def coordinates_fit(op: OpSignature, target: Target) -> Verdict:
    x, indices, y = op.inputs[0], op.inputs[1], op.outputs[0]
    assert x is not None and indices is not None
    count = indices.shape[-1] if indices.shape else 0
    given = f"indices {list(indices.shape)} of {list(x.shape)}"
    if not 1 <= count <= len(x.shape):
        return no(given)
    expected = (*indices.shape[:-1], *x.shape[count:])
    return OK if expected == y.shape else no(f"{given} do not give {list(y.shape)}")


@limit("indices of several coordinates must be constant")
def several_are_constant(op: OpSignature, target: Target) -> Verdict:
    """The kernel reads one index; to make one of several takes products of integers."""
    indices = op.inputs[1]
    assert indices is not None
    if indices.shape[-1] == 1 or indices.constant:
        return OK
    hint = "use GATHER along one axis, on a tensor reshaped so that a coordinate becomes one index"
    return no(f"{indices.name!r} has {indices.shape[-1]} and is computed at run time", hint=hint)


@limit("constant coordinates must lie inside the input")
def coordinates_inside(op: OpSignature, target: Target) -> Verdict:
    x, indices = op.inputs[0], op.inputs[1]
    assert x is not None and indices is not None
    if not indices.constant or indices.magnitudes is None:
        return OK
    sizes = x.shape[: indices.shape[-1]]
    given = np.asarray(indices.magnitudes).reshape(-1, len(sizes))
    if indices.values is not None:
        given = np.asarray(indices.values, np.float64).reshape(-1, len(sizes))
    wrong = [row for row in given if not all(0 <= one < size for one, size in zip(row, sizes, strict=True))]
    return OK if not wrong else no(f"{[int(one) for one in wrong[0]]} of {list(sizes)}")


@serves(
    "GATHER_ND",
    limits=(same_moved_type, not_empty, index_type, coordinates_fit, several_are_constant, coordinates_inside),
)
def legalize(state: Legalizer) -> None:
    """Emit one node of the kernel `gather`; coordinates become indices of the joined dimensions."""
    x, indices = state.signature.inputs[0], state.signature.inputs[1]
    assert x is not None and indices is not None
    sizes = x.shape[: indices.shape[-1]]
    count = prod(indices.shape[:-1])
    params = GatherParams(1, 1, prod(sizes), count, prod(x.shape[len(sizes) :]) * x.dtype.itemsize)
    if len(sizes) == 1:
        emit_gather(state, params, data=0, indices=1)
        return
    steps = [prod(sizes[at + 1 :]) for at in range(len(sizes))]
    flat = (state.constant(1).reshape(-1, len(sizes)).astype(np.int64) * steps).sum(1).astype(np.int32)
    made = Value(f"{indices.name}, joined", shape4((count,)), ElementType.INT32, data=flat)
    emit_gather(state, params, data=0, known=state.graph.add_value(made))
