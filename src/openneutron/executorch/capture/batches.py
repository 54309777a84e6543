"""Check inputs and calibration data in the forms users have them, and split them into the model's batch size.

Accepted are tensors or numpy arrays; tuples by position or mappings by the parameter names of `forward`; arguments that are
mappings, lists or tuples of tensors themselves; the batches of a `DataLoader`, with labels behind the inputs; single samples
without their batch dimension, or larger batches.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from openneutron.errors import OptionError, not_a_model
from openneutron.executorch.capture.structure import (
    InputStructure,
    is_nested,
    structure_of,
    structure_of_program,
)

Inputs = tuple[Any, ...]


@dataclass(frozen=True)
class CheckedData:
    """Example inputs and calibration batches as tuples of tensors; `notes` describe conversions of the data.

    `structure` says how the model's own arguments hold these tensors, where it takes others than tensors by position.
    """

    inputs: Inputs | None
    batches: list[Inputs] | None
    notes: tuple[str, ...] = ()
    structure: InputStructure | None = None


def check_data(
    source: Any, example_inputs: Any, calibration: Any, *, trained: bool, names: Sequence[str] = ()
) -> CheckedData:
    """Return example inputs and calibration batches of a model; raises an error if something is missing.

    `names` are those of the model's inputs; by default the parameters of the module's `forward`.

    Example:
        >>> given = check_data(model, (image,), [images], trained=False)
        >>> given.inputs, given.batches
    """
    is_module = isinstance(source, torch.nn.Module)
    if not is_module and not isinstance(source, torch.export.ExportedProgram):
        raise not_a_model(source)
    if isinstance(source, torch.jit.ScriptModule):
        raise OptionError("the model is a TorchScript module", hint="give the nn.Module it was made from")
    if is_module and example_inputs is None:
        raise OptionError("example_inputs is missing", hint="give a tuple of tensors, as for torch.export.export")
    names = names or names_of(source)
    structure = _structure(source, example_inputs, names)
    if structure is not None:
        if example_inputs is None:
            args, named = source.example_inputs or ((), {})
        else:
            args, named = structure.split(example_inputs)
        example_inputs = structure.flatten(args, named, "example_inputs") if args or named else None
        names = structure.names
    inputs = None if example_inputs is None else _example("example_inputs", example_inputs, names)
    for position, value in enumerate(inputs or ()):
        if not value.numel():
            raise OptionError(f"example_inputs[{position}] is empty: {list(value.shape)}", hint="give one real input")
    batches, labelled = ([], 0) if calibration is None else _batches(calibration, inputs, names, structure)
    if is_module and not batches and not trained:
        raise OptionError(
            "calibration is missing" if calibration is None else "calibration is empty",
            hint="give inputs that look like real ones, e.g. calibration=[(image,) for image in images]; "
            "they set the INT8 ranges",
        )
    taken = len(inputs or ())
    note = f"calibration batches have {labelled} parts, the model takes {taken}: the others were taken for labels"
    return CheckedData(inputs, None if calibration is None else batches, (note,) if labelled else (), structure)


def _structure(source: Any, example_inputs: Any, names: Sequence[str]) -> InputStructure | None:
    """Return the structure of the model's arguments; None where they are tensors by position."""
    if isinstance(source, torch.export.ExportedProgram):
        return structure_of_program(source)
    if isinstance(example_inputs, Mapping) and example_inputs:
        known = _parameters_of(source)
        required = [one for one in known if one.default is one.empty]
        if not set(example_inputs) <= {one.name for one in known}:
            # An only parameter that is a mapping itself, given bare; one unknown name is rather a mistake.
            bare = len(required) == 1 and len(example_inputs) > 1
            return structure_of((dict(example_inputs),), {}, names) if bare else None
        if any(one.name not in example_inputs for one in required):
            return None
        by_position = set(names[: len(example_inputs)]) == set(example_inputs)
        if by_position and not any(map(is_nested, example_inputs.values())):
            return None
        return structure_of((), dict(example_inputs), ())
    if not isinstance(example_inputs, (tuple, list)) or not any(map(is_nested, example_inputs)):
        return None
    return structure_of(tuple(example_inputs), {}, names)


def names_of(source: Any) -> list[str]:
    """Return the names of the model's inputs."""
    if isinstance(source, torch.export.ExportedProgram):
        return [str(name) for name in source.graph_signature.user_inputs]
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in inspect.signature(source.forward).parameters.values() if one.kind in positional]


def _parameters_of(source: torch.nn.Module) -> list[inspect.Parameter]:
    """Return the parameters that can be given by name."""
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [one for one in inspect.signature(source.forward).parameters.values() if one.kind in by_name]


def _example(what: str, given: Any, names: Sequence[str]) -> Inputs:
    """Return the input tensors of one call; anything else is an `OptionError` that names the wrong argument."""
    if isinstance(given, (torch.Tensor, np.ndarray)):
        return (_tensor(what, given),)
    if isinstance(given, Mapping):
        unknown = sorted(set(given) - set(names))
        if unknown or not given:
            raise OptionError(f"{what} has {', '.join(map(str, unknown)) or 'no inputs'}", hint=_takes(names))
        given = _by_name(what, given, names[: len(given)])
    if not isinstance(given, (tuple, list)) or not given:
        raise OptionError(f"{what} is a {type(given).__name__}", hint="give a tuple of tensors")
    return tuple(_tensor(f"{what}[{position}]", value) for position, value in enumerate(given))


def _batches(
    given: Any, inputs: Inputs | None, names: Sequence[str], structure: InputStructure | None
) -> tuple[list[Inputs], int]:
    """Return all batches as input tuples of the example inputs' shapes, and the number of parts of batches with labels."""
    if isinstance(given, (torch.Tensor, np.ndarray)):
        given = [given]
    if not isinstance(given, Iterable) and hasattr(given, "__getitem__") and hasattr(given, "__len__"):
        given = map(given.__getitem__, range(len(given)))  # a torch Dataset
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise OptionError(
            f"calibration is a {type(given).__name__}",
            hint="give a list of input tuples: [(image,) for image in images]",
        )
    batches: list[Inputs] = []
    labelled = 0
    for position, batch in enumerate(given):
        what = f"calibration[{position}]"
        if structure is not None:
            batch = structure.flatten(*structure.split(batch), what)
        elif isinstance(batch, Mapping):
            batch = _by_name(what, batch, names[: len(inputs)] if inputs else names)
        elif inputs is not None and isinstance(batch, (tuple, list)) and len(batch) > len(inputs):
            labelled = len(batch)
            batch = batch[: len(inputs)]
        one = _example(what, batch, names)
        batches += [one] if inputs is None else _split(what, one, inputs)
    return batches, labelled


def _by_name(what: str, given: Mapping[Any, Any], names: Sequence[str]) -> tuple[Any, ...]:
    missing = [name for name in names if name not in given]
    if missing:
        raise OptionError(f"{what} has {', '.join(map(str, given))}, and no {missing[0]}", hint=_takes(names))
    return tuple(given[name] for name in names)


def _takes(names: Sequence[str]) -> str:
    return f"the model takes {', '.join(names)}; the first of them must all be given"


def _tensor(what: str, value: Any) -> torch.Tensor:
    """Convert to a tensor; numpy's default float64 becomes float32, the only float type computed here."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        made = torch.from_numpy(np.array(value, order="C"))
        return made.float() if made.dtype == torch.float64 else made
    if not isinstance(value, torch.Tensor):
        raise OptionError(
            f"{what} is a {type(value).__name__}",
            hint="give tensors or numpy arrays, or containers of them; other values belong into the module",
        )
    return value


def _split(what: str, batch: Inputs, inputs: Inputs) -> list[Inputs]:
    """Split a batch along its first dimension into pieces of the size of the example inputs."""
    single = len(batch) == len(inputs) and all(
        given.shape == wanted.shape[1:] and wanted.shape[:1] == (1,)
        for given, wanted in zip(batch, inputs, strict=True)
    )
    batch = tuple(given.unsqueeze(0) for given in batch) if single else batch
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
