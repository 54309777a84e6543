"""MIRROR_PAD: borders that repeat the image backwards, by the row and column tables of `resize_nearest`."""

from __future__ import annotations

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty
from openneutron.compiler.kernels.elementwise import reshape
from openneutron.compiler.kernels.movement import around, constant_argument, numbers, same_moved_type, same_quantization
from openneutron.compiler.kernels.resize_nearest import emit_picks
from openneutron.compiler.kernels.views import bind_view
from openneutron.compiler.legalizer import Legalizer, shape4
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.verdict import OK, Verdict, limit, no

_REFLECT = 0  # schema's MirrorPadMode: REFLECT does not repeat the edge, SYMMETRIC does


def _edge(op: OpSignature) -> int:
    """Return the number of elements at each edge that are not repeated."""
    return 1 if op.options is None or op.options.mode == _REFLECT else 0


def mirror_indices(size: int, before: int, after: int, edge: int) -> list[int]:
    """Return the source index of each position of a padded dimension."""
    front = list(range(before - 1 + edge, edge - 1, -1))
    back = [size - 1 - edge - i for i in range(after)]
    return [*front, *range(size), *back]


@limit("paddings must be constant and no larger than the image that they repeat")
def paddings_fit(op: OpSignature, target: Target) -> Verdict:
    x, borders = op.inputs[0], numbers(op, 1)
    assert x is not None and borders is not None
    given = f"paddings {borders} for shape {list(x.shape)}"
    if len(borders) != 2 * len(x.shape) or min(borders, default=0) < 0:
        return no(given)
    pairs = list(zip(borders[::2], borders[1::2], strict=True))
    if any(max(pair) > size - _edge(op) for size, pair in zip(x.shape, pairs, strict=True)):
        return no(given)
    expected = tuple(n + a + b for n, (a, b) in zip(x.shape, pairs, strict=True))
    return OK if expected == op.outputs[0].shape else no(f"{given}, output {list(op.outputs[0].shape)}")


@serves("MIRROR_PAD", limits=(same_moved_type, not_empty, constant_argument, same_quantization, paddings_fit))
def legalize(state: Legalizer) -> None:
    """Emit one node if only rows and columns of an image are padded, else one per padded dimension."""
    op = state.signature
    x, y, borders = op.inputs[0], op.outputs[0], numbers(op, 1)
    assert x is not None and borders is not None
    tables = [mirror_indices(n, borders[2 * k], borders[2 * k + 1], _edge(op)) for k, n in enumerate(x.shape)]
    axes = [axis for axis, size in enumerate(x.shape) if len(tables[axis]) != size]
    if not axes:
        bind_view(state)
        return
    rank = len(x.shape)
    if rank <= 4 and set(axes) <= {rank - 3, rank - 2}:
        _, height, width, _ = shape4(x.shape)
        rows = tables[rank - 3] if rank >= 3 else list(range(height))
        columns = tables[rank - 2] if rank >= 2 else list(range(width))
        emit_picks(state, state.value(0), state.output(), rows, columns)
        return
    shape, source = list(x.shape), state.value(0)
    for axis in axes:
        narrow = around(tuple(shape), axis)
        shape[axis] = y.shape[axis]
        wide = around(tuple(shape), axis)
        v = state.graph.values[source]
        made = (
            reshape(state, state.output(), wide)
            if axis == axes[-1]
            else state.temporary(f"{y.name} (mirrored)", wide, v.dtype, v.scale, v.zero_point)
        )
        emit_picks(state, reshape(state, source, narrow), made, list(range(narrow[1])), tables[axis])
        source = made
