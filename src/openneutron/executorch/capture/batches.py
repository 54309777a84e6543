"""Inputs and calibration data as people hand them over, checked and cut into pieces that the model takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from openneutron.errors import OptionError, not_a_model

Inputs = tuple[Any, ...]


def checked(
    source: Any, example_inputs: Any, calibration: Any, *, trained: bool
) -> tuple[Inputs | None, list[Inputs] | None]:
    """Example inputs and calibration batches of a model, or the error that says what is missing.

    Example:
        >>> inputs, batches = checked(model, (image,), [images], trained=False)
    """
    is_module = isinstance(source, torch.nn.Module)
    if not is_module and not isinstance(source, torch.export.ExportedProgram):
        raise not_a_model(source)
    if is_module and example_inputs is None:
        raise OptionError("example_inputs is missing", hint="give a tuple of tensors, as for torch.export.export")
    inputs = None if example_inputs is None else input_tuple("example_inputs", example_inputs)
    batches = None if calibration is None else calibration_batches(calibration, inputs)
    if is_module and not batches and not trained:
        raise OptionError(
            "calibration is missing" if calibration is None else "calibration is empty",
            hint="give inputs that look like real ones, e.g. calibration=[(image,) for image in images]; "
            "they set the INT8 ranges",
        )
    return inputs, batches


def input_tuple(what: str, given: Any) -> tuple[Any, ...]:
    """The tensors of one call; anything else is an `OptionError` that names the place."""
    if isinstance(given, torch.Tensor):
        raise OptionError(f"{what} is a tensor", hint=f"give a tuple of tensors: ({what},)")
    if not isinstance(given, (tuple, list)) or not given:
        raise OptionError(f"{what} is a {type(given).__name__}", hint="give a tuple of tensors")
    for position, value in enumerate(given):
        if not isinstance(value, torch.Tensor):
            raise OptionError(f"{what}[{position}] is a {type(value).__name__}", hint="give tensors")
    return tuple(given)


def calibration_batches(given: Any, inputs: tuple[Any, ...] | None) -> list[tuple[Any, ...]]:
    """The calibration data as a list of input tuples of the shapes of the example inputs; larger batches are split."""
    if isinstance(given, torch.Tensor) or not isinstance(given, Iterable):
        raise OptionError(
            f"calibration is a {type(given).__name__}",
            hint="give a list of input tuples: [(image,) for image in images]",
        )
    batches: list[tuple[Any, ...]] = []
    for position, batch in enumerate(given):
        what = f"calibration[{position}]"
        one = input_tuple(what, (batch,) if isinstance(batch, torch.Tensor) else batch)
        batches += [one] if inputs is None else _split(what, one, inputs)
    return batches


def _split(what: str, batch: tuple[Any, ...], inputs: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """A batch cut along its first dimension into pieces of the size of the example inputs."""
    counts = set()
    for given, wanted in zip(batch, inputs, strict=False):
        fits = given.ndim == wanted.ndim and given.shape[1:] == wanted.shape[1:] and given.dtype == wanted.dtype
        rows, step = (given.shape[0], wanted.shape[0]) if fits and given.ndim else (1, 1)
        counts.add(rows // step if fits and rows % step == 0 else 0)
    if len(batch) != len(inputs) or len(counts) != 1 or counts == {0}:
        described = [", ".join(f"{x.dtype} {list(x.shape)}" for x in values) for values in (batch, inputs)]
        raise OptionError(
            f"{what} is {described[0]}", hint=f"give what example_inputs is: {described[1]}, or a whole number of them"
        )
    (count,) = counts
    return [tuple(pieces) for pieces in zip(*(x.chunk(count) if count > 1 else (x,) for x in batch), strict=True)]
