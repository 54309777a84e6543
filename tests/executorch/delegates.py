"""Programs for tests of the runtime: a payload in a `.pte` without quantizer, partitioner or backend in between."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from executorch.exir import to_edge
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch import Tensor

from openneutron.executorch.payload import BACKEND_ID


class _Shapes(torch.nn.Module):
    """Stands in for the delegated graph: only the shapes, types and memory formats of its outputs matter."""

    def __init__(self, outputs: Sequence[Tensor]) -> None:
        super().__init__()
        self.outputs = [(tuple(t.shape), t.dtype, t.dim() == 4 and is_channels_last(t)) for t in outputs]

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        made = []
        for shape, dtype, channels_last in self.outputs:
            tensor = torch.zeros(shape, dtype=dtype)
            made.append(tensor.to(memory_format=torch.channels_last) if channels_last else tensor)
        return tuple(made)


class _Caller(torch.nn.Module):
    """Calls its delegates one after the other: the outputs of one are the inputs of the next."""

    def __init__(self, delegates: Sequence[LoweredBackendModule]) -> None:
        super().__init__()
        self.count = len(delegates)
        for index, delegate in enumerate(delegates):
            setattr(self, f"delegate_{index}", delegate)

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        for index in range(self.count):
            values = tuple(getattr(self, f"delegate_{index}")(*values))
        return values


def is_channels_last(tensor: Tensor) -> bool:
    """Whether the memory order really is channels-last, which one-channel and one-pixel tensors leave open."""
    return tensor.is_contiguous(memory_format=torch.channels_last) and not tensor.is_contiguous()


def program_of(payloads: Sequence[bytes], inputs: Sequence[Tensor], outputs: Sequence[Sequence[Tensor]]) -> bytes:
    """A `.pte` that chains the payloads; `outputs` has examples of each one's outputs."""
    delegates = []
    feeds = tuple(inputs)
    for payload, made in zip(payloads, outputs, strict=True):
        edge = to_edge(torch.export.export(_Shapes(made), feeds)).exported_program()
        delegates.append(LoweredBackendModule(edge, BACKEND_ID, payload, []))
        feeds = tuple(made)
    exported = torch.export.export(_Caller(delegates), tuple(inputs))
    return to_edge(exported).to_executorch().buffer
