"""Nested arguments and results: a model that takes or returns mappings, lists or tuples of tensors.

Programs take and give flat lists of tensors. An `InputStructure` says how a model's arguments become such a list; it keeps the
names of layers, because the flat module shares everything with the model but its `forward`.

Example:
    >>> structure = structure_of(({"left": left, "right": right},), {}, ["pair"])
    >>> structure.names
    ('pair_left', 'pair_right')
    >>> flat_module(model, structure)(left, right)
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram

from openneutron.errors import OptionError
from openneutron.executorch.upstream.names import (
    TreeSpec,
    tree_flatten,
    tree_flatten_with_path,
    tree_unflatten,
    with_calls,
)


@dataclass(frozen=True)
class InputStructure:
    """How a call's arguments, by position and by name, are made of tensors; `names` has one for each tensor."""

    spec: TreeSpec
    names: tuple[str, ...]

    def flatten(self, args: Sequence[Any], named: Mapping[str, Any], what: str) -> tuple[Any, ...]:
        """Return the tensors of a call in order; a call of another structure is an `OptionError` about `what`."""
        try:
            return tuple(self.spec.flatten_up_to((tuple(args), dict(named))))
        except ValueError as error:
            hint = f"it has these tensors: {', '.join(self.names)}"
            raise OptionError(f"{what} is not built as example_inputs is", hint=hint) from error

    def split(self, given: Any) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """Return the arguments by position and by name of a sample: a tuple of arguments, a mapping by name, or one argument.

        Values behind the arguments (labels) are dropped.
        """
        args, named = self.spec.children()
        if isinstance(given, Mapping) and named.num_leaves and not args.num_leaves:
            return (), given
        if isinstance(given, (tuple, list)) and len(given) >= len(args.children()):
            return tuple(given[: len(args.children())]), {}
        return (given,), {}

    def arrange(self, tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments by position and by name that hold these tensors."""
        args, named = tree_unflatten(list(tensors), self.spec)
        return args, named


@dataclass(frozen=True)
class CallStructure:
    """How a program is called as its model is: what `Program.run` takes and returns.

    `inputs` is None where the model takes plain tensors, `outputs` where it returns one tensor or a tuple of tensors.
    """

    inputs: InputStructure | None
    outputs: TreeSpec | None

    def flatten(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Return the program's inputs, or None where the arguments are those already."""
        if self.inputs is None or (not named and all(map(_is_array, args)) and len(args) == len(self.inputs.names)):
            return None
        if len(args) == 1 and not named:
            args, named = self.inputs.split(args[0] if isinstance(args[0], Mapping) else args)
        return self.inputs.flatten(args, named, "the input")

    def rebuild(self, results: tuple[Any, ...]) -> Any:
        """Return a program's results as the model returns them."""
        if self.outputs is None or len(results) < self.outputs.num_leaves:
            return results
        # Programs return the inputs that they change first.
        return tree_unflatten(list(results[len(results) - self.outputs.num_leaves :]), self.outputs)


def call_structure(inputs: InputStructure | None, outputs: TreeSpec | None) -> CallStructure | None:
    """Return the structure of a program's calls; None where both are flat."""
    nested = outputs if outputs is not None and not is_flat(outputs) else None
    return CallStructure(inputs, nested) if inputs is not None or nested is not None else None


def is_flat(spec: TreeSpec) -> bool:
    """Whether a value is one tensor or a tuple of tensors."""
    return bool(spec.is_leaf() or (spec.type is tuple and all(child.is_leaf() for child in spec.children())))


def is_nested(value: Any) -> bool:
    """Whether an argument is a container of tensors rather than a tensor or a number."""
    return not _is_array(value) and not tree_flatten(value)[1].is_leaf()


def structure_of(args: Sequence[Any], named: Mapping[str, Any], parameters: Sequence[str]) -> InputStructure:
    """Return the structure of a call; `parameters` are the names of the arguments by position."""
    given = {**dict(zip(parameters, args, strict=False)), **named}
    paths, _ = tree_flatten_with_path(given)
    names: list[str] = []
    for path, _ in paths:
        name = re.sub(r"\W", "_", "_".join(map(_key, path)))
        names.append(name if name not in names else f"{name}_{len(names)}")
    return InputStructure(tree_flatten((tuple(args), dict(named)))[1], tuple(names))


def flat(model: torch.nn.Module | ExportedProgram, structure: InputStructure) -> torch.nn.Module | ExportedProgram:
    """Return the model with the tensors of a call as its arguments."""
    return flat_program(model) if isinstance(model, ExportedProgram) else flat_module(model, structure)


def flat_module(model: torch.nn.Module, structure: InputStructure) -> torch.nn.Module:
    """Return a module that takes the tensors of a call one by one; submodules, weights and buffers are the model's own."""
    original = type(model)
    own = model.__dict__.get("forward")

    def forward(self: torch.nn.Module, *tensors: Any) -> Any:
        args, named = structure.arrange(tensors)
        return original.forward(self, *args, **named) if own is None else own(*args, **named)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in ("self", *structure.names)]
    vars(forward)["__signature__"] = inspect.Signature(parameters)
    # The class keeps its name: reports and patterns for layers use it.
    flat = type(original.__name__, (original,), {"forward": forward, "__module__": original.__module__})
    made: torch.nn.Module = object.__new__(flat)
    made.__dict__.update({name: value for name, value in model.__dict__.items() if name != "forward"})
    return made


def structure_of_program(program: ExportedProgram) -> InputStructure | None:
    """Return the structure of an exported program's inputs; None where it takes plain tensors by position."""
    spec = program.call_spec.in_spec
    if spec is None or spec.num_leaves != len(program.graph_signature.user_inputs):
        return None
    args, named = spec.children()
    if is_flat(args) and not named.num_leaves:
        return None
    return InputStructure(spec, tuple(map(str, program.graph_signature.user_inputs)))


def flat_program(program: ExportedProgram) -> ExportedProgram:
    """Return the program with its tensors as inputs by position; graph and weights are shared."""
    entry = program.module_call_graph[0]
    if entry.signature is None:
        return program
    _, flat = tree_flatten((tuple(range(entry.signature.in_spec.num_leaves)), {}))
    names = [str(name) for name in program.graph_signature.user_inputs]
    signature = dataclasses.replace(entry.signature, in_spec=flat, forward_arg_names=names)
    # A copy: the caller's own takes what it took.
    return with_calls(program, [dataclasses.replace(entry, signature=signature), *program.module_call_graph[1:]])


def _key(entry: Any) -> str:
    """Return one step of a path: a mapping's key, an attribute, or a position."""
    for attribute in ("key", "name", "idx"):
        if hasattr(entry, attribute):
            return str(getattr(entry, attribute))
    return str(entry)


def _is_array(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, np.ndarray))
