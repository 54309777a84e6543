"""The TFLM arena: the `kTensorArenaSize` needed by a file converted by NXP.

TFLite Micro places every activation, and each NeutronGraph's scratch, by decreasing size at the lowest offset that is free
during its lifetime. The interpreter's own structures follow (`interpreter_bytes` of `board/rules.toml`), and 64 bytes per
operator, both fitted to three readmes of NXP's SDK: CifarNet and MobileNetV1 0.25 (three operators: 720 bytes each) and DS-CNN
(four: 784). Convolutions on the CPU also store a multiplier and a shift
per output channel there.

Example:
    >>> arena_bytes(graph, steps, rules("imxrt700").interpreter_bytes)
    44768
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from openneutron.litert.graph import Graph
from openneutron.microcode.encode import align

OPERATOR_BYTES = 64  # fitted: node, registration, the operator's own data and its output's tensor
METHOD_BYTES = 425  # fitted: 3,513 bytes for 3,088 planned, readme of executorch_cifarnet for frdmimxrt700
CHANNEL_BYTES = 8  # INT32 multiplier and shift, which TFLM computes when it starts
_PER_CHANNEL = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV")


class Step(NamedTuple):
    """One operator of the converted file: a NeutronGraph with its scratch, or a CPU operator (`operator` >= 0)."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    scratch_bytes: int = 0
    operator: int = -1


@dataclass
class _Life:
    size: int
    first: int
    last: int
    offset: int = -1


def arena_bytes(graph: Graph, steps: Sequence[Step], interpreter_bytes: int) -> int:
    """Return the size of the arena for these steps in order; `interpreter_bytes` are allocator, graph and its ends."""
    persistent = interpreter_bytes + OPERATOR_BYTES * len(steps)
    for step in steps:
        if step.operator >= 0 and graph.operators[step.operator].code in _PER_CHANNEL:
            op = graph.operators[step.operator]
            persistent += CHANNEL_BYTES * (graph.tensors[op.outputs[0]].shape or (1,))[-1]
    return align(_planned_height(_lives(graph, steps)) + persistent)


def planned_bytes(graph: Graph, steps: Sequence[Step]) -> int:
    """Return ExecuTorch's planned memory for these steps: tensors outside the delegates, whose scratch is temporary."""
    return _planned_height(_lives(graph, [step._replace(scratch_bytes=0) for step in steps]))


def method_bytes(planned: int) -> int:
    """Return what ExecuTorch's method allocator holds: planned memory, and structures of a program of one delegate."""
    return planned + METHOD_BYTES


def _lives(graph: Graph, steps: Sequence[Step]) -> list[_Life]:
    """Return sizes and lifetimes, in steps, of all planned buffers; inputs live from the start, outputs to the end."""
    lives: dict[int, _Life] = {}
    for tensor in graph.inputs:
        lives[tensor] = _Life(align(graph.tensors[tensor].nbytes), 0, 0)
    scratch: list[_Life] = []
    for at, step in enumerate(steps):
        for tensor in (*step.inputs, *step.outputs):
            if tensor < 0 or graph.tensors[tensor].data is not None:
                continue
            life = lives.setdefault(tensor, _Life(align(graph.tensors[tensor].nbytes), at, at))
            life.last = at
        if step.scratch_bytes:
            scratch.append(_Life(align(step.scratch_bytes), at, at))
    for tensor in graph.outputs:
        if tensor in lives:
            lives[tensor].last = len(steps)
    return [*lives.values(), *scratch]


def _planned_height(lives: list[_Life]) -> int:
    """Return the height of the lowest-fit placement by decreasing size, as TFLM's greedy planner makes it."""
    placed: list[_Life] = []
    for life in sorted(lives, key=lambda one: (-one.size, one.first)):
        offset = 0
        for other in sorted(
            (o for o in placed if o.first <= life.last and life.first <= o.last), key=lambda o: o.offset
        ):
            if other.offset - offset >= life.size:
                break
            offset = max(offset, other.offset + other.size)
        life.offset = offset
        placed.append(life)
    return max((life.offset + life.size for life in placed), default=0)
