"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: a strided copy, behind a pad or in front of a crop where one is asked for."""

from __future__ import annotations

from math import prod

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty
from openneutron.compiler.kernels.copy import RANK, emit_copy
from openneutron.compiler.kernels.movement import constant_arguments, numbers, same_moved_type, same_quantization
from openneutron.compiler.kernels.pad import emit_pad
from openneutron.compiler.kernels.slice import Cut, emit_slice
from openneutron.compiler.legalizer import Legalizer, shape4
from openneutron.compiler.numbers.strides import Loop, dense
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.verdict import OK, Verdict, limit, no


def _arguments(op: OpSignature) -> tuple[list[int], list[tuple[int, int]]]:
    """Return block sizes, and (before, after) of each block's padding or crop."""
    blocks, borders = numbers(op, 1), numbers(op, 2)
    assert blocks is not None and borders is not None
    return blocks, list(zip(borders[::2], borders[1::2], strict=True))


def _wide_shape(op: OpSignature) -> tuple[int, ...]:
    """Return the shape of the side that is not in blocks, with padding or before cropping."""
    blocks, borders = _arguments(op)
    x = op.inputs[0]
    assert x is not None
    rest = x.shape[1 + len(blocks) :]
    spatial = x.shape[1 : 1 + len(blocks)]
    if op.code == "SPACE_TO_BATCH_ND":
        return (x.shape[0], *(s + a + b for s, (a, b) in zip(spatial, borders, strict=True)), *rest)
    return (x.shape[0] // prod(blocks), *(s * b for s, b in zip(spatial, blocks, strict=True)), *rest)


@limit("blocks must cover one or two dimensions behind the batch and divide them")
def blocks_divide(op: OpSignature, target: Target) -> Verdict:
    x, blocks, borders = op.inputs[0], numbers(op, 1), numbers(op, 2)
    assert x is not None and blocks is not None and borders is not None
    count = len(blocks)
    given = f"block {blocks}, borders {borders}, shape {list(x.shape)}"
    if not 1 <= count <= 2 or len(x.shape) < 1 + count or len(x.shape) > 4 or len(borders) != 2 * count:
        return no(given)
    if min(blocks) < 1 or min(borders) < 0 or (op.code == "BATCH_TO_SPACE_ND" and x.shape[0] % prod(blocks)):
        return no(given)
    wide = _wide_shape(op)
    if any(size % block for size, block in zip(wide[1:], blocks, strict=False)):
        return no(given)
    if op.code == "SPACE_TO_BATCH_ND":
        narrow = (
            x.shape[0] * prod(blocks),
            *(s // b for s, b in zip(wide[1:], blocks, strict=False)),
            *wide[1 + count :],
        )
        expected = narrow
    else:
        _, pairs = _arguments(op)
        expected = (wide[0], *(s - a - b for s, (a, b) in zip(wide[1:], pairs, strict=False)), *wide[1 + count :])
    return OK if expected == op.outputs[0].shape else no(f"{given}, output {list(op.outputs[0].shape)}")


def _loops(wide: tuple[int, ...], blocks: list[int], to_batch: bool) -> list[Loop]:
    """Return the loops between [n, (s, b) …, rest] and [b …, n, s …, rest]."""
    count, rest = len(blocks), prod(wide[1 + len(blocks) :])
    steps = [size // block for size, block in zip(wide[1:], blocks, strict=False)]
    spread: list[int] = [wide[0]]
    for step, block in zip(steps, blocks, strict=True):
        spread += [step, block]
    flat = dense([*spread, rest])
    blocked = dense([*blocks, wide[0], *steps, rest])
    pairs = [(wide[0], flat[0], blocked[count]), (rest, flat[-1], blocked[-1])]
    for k in range(count):
        pairs.append((steps[k], flat[1 + 2 * k], blocked[count + 1 + k]))
        pairs.append((blocks[k], flat[2 + 2 * k], blocked[k]))
    assert len(pairs) <= RANK
    return [Loop(n, w, b) if to_batch else Loop(n, b, w) for n, w, b in pairs]


@serves("SPACE_TO_BATCH_ND", limits=(same_moved_type, not_empty, constant_arguments, same_quantization, blocks_divide))
def legalize_to_batch(state: Legalizer) -> None:
    """Emit a pad with the output's zero point if needed, then one copy."""
    op = state.signature
    blocks, borders = _arguments(op)
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    wide, source = _wide_shape(op), state.value(0)
    if any(a or b for a, b in borders):
        value = state.graph.values[source]
        padded = state.temporary(f"{y.name} (padded)", shape4(wide), value.dtype, y.scale, y.zero_point)
        before = [0, *(a for a, _ in borders)] + [0] * (len(wide) - 1 - len(borders))
        emit_pad(state, source, padded, x.shape, wide, before, y.zero_point)
        source = padded
    emit_copy(state, source, state.output(), _loops(wide, blocks, to_batch=True))


@serves("BATCH_TO_SPACE_ND", limits=(same_moved_type, not_empty, constant_arguments, same_quantization, blocks_divide))
def legalize_to_space(state: Legalizer) -> None:
    """Emit one copy, then a crop if needed."""
    op = state.signature
    blocks, borders = _arguments(op)
    wide, loops = _wide_shape(op), _loops(_wide_shape(op), blocks, to_batch=False)
    if not any(a or b for a, b in borders):
        emit_copy(state, state.value(0), state.output(), loops)
        return
    y = op.outputs[0]
    dtype = state.graph.values[state.value(0)].dtype
    whole = state.temporary(f"{y.name} (uncropped)", shape4(wide), dtype, y.scale, y.zero_point)
    emit_copy(state, state.value(0), whole, loops)
    firsts = [0, *(a for a, _ in borders)] + [0] * (len(wide) - 1 - len(borders))
    cuts = [Cut(size, first, 1, count) for size, first, count in zip(wide, firsts, y.shape, strict=True)]
    emit_slice(state, whole, state.output(), cuts)
