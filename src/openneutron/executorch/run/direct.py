"""Many samples of a program that is one delegate and nothing else, straight through the driver.

ExecuTorch's Python interface takes some ten microseconds for each run and holds Python's lock for them, as long as a small
network takes. Where a program only hands its inputs to our delegate and its outputs back, the driver gives the same bytes
without it: all samples are one call, and other threads go on meanwhile.

Example:
    >>> direct = direct_of(pte, where="model.pte")
    >>> direct.run([(image,), (another,)])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from openneutron.executorch.run.inputs import arrange_inputs
from openneutron.machine.batch import Block, Copies, rows_of
from openneutron.machine.simulator import DTYPES, Simulator, TensorInfo
from openneutron.microcode.decode import header_of
from openneutron.microcode.payload import BACKEND_ID, CHANNELS_LAST, Payload, parse_payload
from openneutron.microcode.pte import Plan, PlanTensor, read_plan
from openneutron.microcode.table import ALIGNMENT

Outputs = tuple[Tensor, ...]


@dataclass(frozen=True)
class _Made:
    """An output of every sample: `step` elements from one to the next, so that each is aligned."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    step: int

    def make(self, samples: int) -> Tensor:
        memory = torch.empty(samples * self.step, dtype=self.dtype)
        return memory.as_strided((samples, *self.shape), (self.step, *self.strides))


class Direct:
    """A program's delegate in the driver; made by `direct_of`."""

    def __init__(self, payload: Payload, plan: Plan, where: str) -> None:
        blocks = payload.microcode, payload.weights, payload.kernels
        self.copies = Copies(lambda: Simulator(*blocks, threads=1, where=where))
        self._inputs, self._outputs = plan.inputs, tuple(map(_describe_tensor, plan.outputs))

    def run(self, samples: Sequence[Sequence[Any]], *, threads: int) -> list[Outputs]:
        """Outputs of the samples before the first that fails, which the program itself has to run to say why."""
        return self.copies.run(samples, self._block, threads=threads)

    def _block(self, samples: Sequence[Sequence[Any]]) -> Block[Outputs]:
        arranged = [tuple(map(_align, arrange_inputs(self._inputs, one, where=""))) for one in samples]
        made = [one.make(len(samples)) for one in self._outputs]
        given = np.array([[value.data_ptr() for value in one] for one in arranged], np.uint64)
        apart = [one.step * one.dtype.itemsize for one in self._outputs]
        taken = rows_of([one.data_ptr() for one in made], apart, len(samples))

        def results(done: int, _alive: object = arranged) -> list[Outputs]:  # the driver reads inputs where they are
            return list(zip(*(one[:done].unbind(0) for one in made), strict=True))

        return Block(given, taken, results)


def direct_of(pte: bytes, *, where: str) -> Direct | None:
    """The way around ExecuTorch, None where the program does more than its delegate, or keeps state or a profile."""
    plan = read_plan(pte, where=where)
    if not plan.direct or plan.delegates != {BACKEND_ID: 1}:
        return None
    payload = parse_payload(plan.payloads[0][1], where=where)
    if payload.converter != "open" or payload.profiling or header_of(payload.microcode)["state_bytes"]:
        return None
    in_order = payload.input_map == tuple(range(len(plan.inputs))) == tuple(range(payload.n_input_args))
    if not in_order or payload.output_map != tuple(range(len(plan.outputs))):
        return None
    direct = Direct(payload, plan, where)
    tensors = zip((*plan.inputs, *plan.outputs), direct.copies.first(1)[0].tensors, strict=True)
    formats = (*payload.input_formats, *payload.output_formats)
    return direct if all(_alike(*pair, form) for pair, form in zip(tensors, formats, strict=True)) else None


def _alike(outside: PlanTensor, inside: TensorInfo, form: int) -> bool:
    """Whether a tensor of the program is handed over as it lies."""
    if outside.dynamic or outside.dtype != np.dtype(DTYPES[inside.dtype]).name:
        return False
    rank, size = len(outside.shape), int(np.prod(outside.shape, dtype=np.int64)) * np.dtype(outside.dtype).itemsize
    wanted = (0, *range(2, rank), 1) if form == CHANNELS_LAST and rank > 2 else tuple(range(rank))
    return size == inside.bytes and _places(outside, outside.dim_order) == _places(outside, wanted)


def _places(tensor: PlanTensor, order: Sequence[int]) -> list[int]:
    """Return the dimensions that decide the layout in memory: all except those of size 1."""
    return [axis for axis in order if tensor.shape[axis] != 1]


def _describe_tensor(tensor: PlanTensor) -> _Made:
    dtype, strides, step = getattr(torch, tensor.dtype), [0] * len(tensor.shape), 1
    for axis in reversed(tensor.dim_order):
        strides[axis], step = step, step * tensor.shape[axis]
    per = max(1, ALIGNMENT // dtype.itemsize)
    return _Made(dtype, tensor.shape, tuple(strides), -(-step // per) * per)


def _align(value: Tensor) -> Tensor:
    return value if value.data_ptr() % ALIGNMENT == 0 else value.clone()
