"""Numpy arrays in, numpy arrays out: for callers that have no torch of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy.typing as npt
import torch

from openneutron.executorch.capture.export import evaluation, one_thread

Array = npt.NDArray[Any]


def tensors_of(arrays: Sequence[Array]) -> list[torch.Tensor]:
    """Each array as a tensor with memory of its own.

    Example:
        >>> tensors_of([image])[0].shape
    """
    return [torch.from_numpy(array.copy()) for array in arrays]


def run_arrays(run: Callable[..., tuple[torch.Tensor, ...]], arrays: Sequence[Array]) -> list[Array]:
    """Call with arrays as tensors; returns the outputs as arrays."""
    return [value.numpy() for value in run(*tensors_of(arrays))]


def exported_module(model: Any) -> Any:
    """An exported program as a module; anything else as it is."""
    return model.module() if isinstance(model, torch.export.ExportedProgram) else model


def forgetter(model: Any) -> Callable[[], None]:
    """What gives a module the buffers back that it has now, whatever it changes of them when it runs."""
    if not isinstance(model, torch.nn.Module):
        return lambda: None
    kept = {name: value.detach().clone() for name, value in model.named_buffers()}

    def forget() -> None:
        with torch.no_grad():
            for name, value in model.named_buffers():
                value.copy_(kept[name])

    return forget


def predictor(model: Any, example: torch.Tensor) -> Callable[[Array], Array]:
    """What gives the first output of a module, an exported program or a function for samples of the example's type.

    A module is asked in evaluation mode, and on one thread: single samples are small, and threads of torch that wait for
    each other beside those of the runtime take several times as long.
    """
    form = exported_module(model)
    plain = isinstance(form, torch.nn.Module) and not isinstance(form, torch.fx.GraphModule)

    def predict(x: Array) -> Array:
        with torch.no_grad(), one_thread(), evaluation(form) if plain else nullcontext():
            found = form(torch.from_numpy(x.copy()).to(example.dtype))
        first: Array = (found[0] if isinstance(found, (tuple, list)) else found).numpy()
        return first

    return predict


def many_predictor(
    run_many: Callable[[list[torch.Tensor]], list[tuple[torch.Tensor, ...]]], example: torch.Tensor
) -> Callable[[list[Array]], list[Array]]:
    """`predictor` for several inputs at a time."""

    def predict(xs: list[Array]) -> list[Array]:
        with torch.no_grad(), one_thread():
            found = run_many([torch.from_numpy(x.copy()).to(example.dtype) for x in xs])
        return [outputs[0].numpy() for outputs in found]

    return predict
