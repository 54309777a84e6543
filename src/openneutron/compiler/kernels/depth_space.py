"""DEPTH_TO_SPACE and SPACE_TO_DEPTH: channel = (row in block * block + column in block) * C + c."""

from __future__ import annotations

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty
from openneutron.compiler.kernels.copy import emit_copy_or_view
from openneutron.compiler.kernels.movement import same_byte_type
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.strides import Loop, dense
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.verdict import OK, Verdict, limit, no


def _block(op: OpSignature) -> int:
    return int(op.options.blockSize) if op.options else 0


@limit("tensors must be 4-D, and the block size must divide what it splits")
def block_divides(op: OpSignature, target: Target) -> Verdict:
    x, y, block = op.inputs[0], op.outputs[0], _block(op)
    assert x is not None
    if len(x.shape) != 4 or len(y.shape) != 4 or block < 1:
        return no(f"block {block}, shapes {list(x.shape)} and {list(y.shape)}")
    deep, wide = (x.shape, y.shape) if op.code == "DEPTH_TO_SPACE" else (y.shape, x.shape)
    n, h, w, c = deep
    if c % (block * block) or wide != (n, h * block, w * block, c // (block * block)):
        return no(f"block {block}, shapes {list(x.shape)} and {list(y.shape)}")
    return OK


@serves("DEPTH_TO_SPACE", "SPACE_TO_DEPTH", limits=(same_byte_type, not_empty, block_divides))
def legalize(state: Legalizer) -> None:
    """Emit one `copy` between [n, h, w, by, bx, c] and [n, h, by, w, bx, c]."""
    op = state.signature
    x, block = op.inputs[0], _block(op)
    assert x is not None
    to_space = op.code == "DEPTH_TO_SPACE"
    n, h, w, c = x.shape if to_space else op.outputs[0].shape
    sizes = (n, h, w, block, block, c // (block * block))
    deep = dense(sizes)
    n_, h_, by, w_, bx, c_ = dense((n, h, block, w, block, sizes[5]))
    wide = (n_, h_, w_, by, bx, c_)
    pairs = zip(sizes, deep, wide, strict=True)
    emit_copy_or_view(state, [Loop(size, d, s) if to_space else Loop(size, s, d) for size, d, s in pairs])
