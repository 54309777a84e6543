"""Run the original float model, the reference for every accuracy figure.

No rewrite has touched it. Buffers that it changes start with their current values, are carried from sample to sample, and are
restored at the end.

Example:
    >>> wanted = run_original(model, batches)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.export import ExportedProgram

from openneutron.errors import UnsupportedError
from openneutron.executorch.capture.export import evaluation
from openneutron.executorch.quantize.accuracy import copy_tensors
from openneutron.executorch.quantize.states import separate_module
from openneutron.executorch.upstream.names import buffers_of

Batches = Sequence[tuple[torch.Tensor, ...]]


def run_original(model: torch.nn.Module | ExportedProgram, batches: Batches) -> list[Any]:
    """Return the model's results on all batches, in evaluation mode; mode and buffers are restored afterwards."""
    if isinstance(model, ExportedProgram):
        module = separate_module(model)
        return _results(module, batches)
    with evaluation(model), preserve_buffers(model):
        return _results(model, batches)


def _results(run: Callable[..., Any], batches: Batches) -> list[Any]:
    found = []
    with torch.no_grad():
        for number, batch in enumerate(batches):
            try:
                found.append(copy_tensors(run(*copy_tensors(batch))))
            except Exception as error:
                first = (str(error).strip().splitlines() or ["no message"])[0].rstrip(".")
                raise UnsupportedError(
                    f"the model fails on sample {number}: {type(error).__name__}: {first}",
                    hint="run model(*sample) alone to see the whole error",
                ) from error
    return found


@contextmanager
def preserve_buffers(model: torch.nn.Module) -> Iterator[None]:
    """Restore every buffer at the end, also one that `forward` replaced by another tensor."""
    held = [(module, name, value) for module in model.modules() for name, value in buffers_of(module).items()]
    first = [None if value is None else value.detach().clone() for _, _, value in held]
    try:
        yield
    finally:
        with torch.no_grad():
            for (module, name, value), content in zip(held, first, strict=True):
                buffers_of(module)[name] = value
                if value is not None and content is not None and not _same(value, content):
                    value.copy_(content)


def _same(value: torch.Tensor, content: torch.Tensor) -> bool:
    return torch.equal(value, content)
