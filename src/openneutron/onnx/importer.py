"""ONNX → `torch.export.ExportedProgram`: the list of calls that `elaborate.py` found, captured by `torch.export`.

Names survive: inputs keep theirs, and every node of the program says in `meta["custom"]` which node of the model it is.
"""

from __future__ import annotations

import inspect
import keyword
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
import torch.fx.traceback
from torch.export import ExportedProgram

from openneutron.errors import OpenNeutronError, UnsupportedError
from openneutron.onnx.elaborate import Elaborator
from openneutron.onnx.fuse import fuse
from openneutron.onnx.names import ONNX_NODE
from openneutron.onnx.read import read_model
from openneutron.onnx.sizes import Sizes, resolve
from openneutron.onnx.values import Step, Value, unshifted

# Their inputs 3 and 4 are statistics, which no gradient reaches.
_NORMS = ("BatchNormalization",)
# Names that the code which torch.fx writes for a graph uses itself.
_RESERVED = frozenset({"self", "torch", "fx_pytree", "pytree", "device", "inf", "nan"})
_TRAINABLE = (torch.float64, torch.float32, torch.float16, torch.bfloat16)  # torch computes little with smaller ones


@dataclass(frozen=True)
class Imported:
    """A model as a module, and as a program of ATen calls.

    `quantized` says that it brings its own scales; `inputs` and `outputs` are the model's names for them.
    """

    module: Replay
    example_inputs: tuple[torch.Tensor, ...]
    quantized: bool
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    notes: tuple[str, ...] = ()
    where: str = ""
    fixed: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def program(self) -> ExportedProgram:
        """What `torch.export` makes of the module."""
        return _exported(self.module, self.example_inputs, self.where)


def load(
    source: str | os.PathLike[str] | bytes, *, sizes: Sizes | None = None, name: str = "", model: Any = None
) -> Imported:
    """Import a model from a file or bytes.

    `sizes` fixes open dimensions: a number by the name of a dimension, or a whole shape by the name of an input.

    Example:
        >>> imported = load("model.onnx", sizes={"batch": 1, "x": (1, 3, 48, 192)})
        >>> imported.program.module()(*imported.example_inputs)
    """
    where = name or ("<bytes>" if isinstance(source, (bytes, bytearray, memoryview)) else os.fspath(source))
    model = read_model(source, name=where) if model is None else model
    inputs, notes = resolve(model, sizes or {}, where=where)
    fuse(model.graph)
    opsets = {one.domain: int(one.version) for one in model.opset_import}
    quantized = any(_quantizes(node) for node in model.graph.node)
    elaborator = Elaborator(opsets, widen=True, keep=quantized, where=where)
    fixed = {one.name: one.number for one in inputs if one.number is not None}
    inputs = [one for one in inputs if one.number is None]
    values = [elaborator.input(one.shape, one.dtype, one.name) for one in inputs]
    known = {name: Value(data=torch.tensor(number), name=name) for name, number in fixed.items()}
    known |= {one.name: value for one, value in zip(inputs, values, strict=True)}
    outputs = elaborator.graph(model.graph, known)
    names = tuple(one.name for one in model.graph.output)
    _check_outputs(outputs, names, where)
    module = Replay(_needed(elaborator.steps, outputs), values, outputs, [one.name for one in inputs])
    examples = tuple(_example(one.shape, one.dtype, position) for position, one in enumerate(inputs))
    return Imported(module, examples, quantized, tuple(one.name for one in inputs), names, notes, where, fixed)


def _check_outputs(outputs: Sequence[Value], names: Sequence[str], where: str) -> None:
    for value, name in zip(outputs, names, strict=True):
        if value.items is not None or value.absent:
            raise UnsupportedError(f"output `{name}` is a sequence", where=where, hint="give tensors as outputs")
    if all(value.data is not None for value in outputs):
        raise UnsupportedError(
            "no output depends on the inputs: the whole model is a constant", where=where, hint="export the model again"
        )


def _quantizes(node: Any) -> bool:
    """Whether a node stores activations with a scale of the model's own; weights alone may be stored so in float models."""
    return node.op_type.startswith(("QuantizeLinear", "QLinear", "QGemm"))


def _needed(steps: Sequence[Step], outputs: Sequence[Value]) -> list[Step]:
    """The steps that some output depends on, in order."""
    wanted = {id(value) for value in outputs}
    kept: list[Step] = []
    for step in reversed(steps):
        if any(value is not None and id(value) in wanted for value in step.outputs):
            kept.append(step)
            wanted.update(id(value) for value in step.call.inputs if value is not None)
    return kept[::-1]


class Replay(torch.nn.Module):
    """The model as a module: makes the calls, each with a note of the node it stands for, so `torch.export` can watch.

    Weights are parameters, other constants buffers.
    """

    notes_nodes = True  # `export` keeps the notes

    def __init__(self, steps: list[Step], inputs: list[Value], outputs: list[Value], names: list[str]) -> None:
        super().__init__()
        self.steps, self.outputs = steps, outputs
        self._names: dict[int, str] = {}
        self._values: list[Value] = []  # keeps the values alive, whose identities are the keys above
        taken: set[str] = set()
        self._arguments = [_identifier(name, taken) for name in names]
        self._entering = inputs
        self._constants = _Names()
        kept: set[int] = set()
        self._statistics = {
            id(one) for step in steps if step.call.node.op_type in _NORMS for one in step.call.inputs[3:5]
        }
        for step in steps:
            for value in (*step.call.inputs, *step.call.own):
                # What only decided something while importing was never asked for as a tensor.
                if value is not None and value.data is not None and value.fake is not None and id(value) not in kept:
                    kept.add(id(value))
                    self._register(value)
        for value in outputs:
            if value.data is not None and id(value) not in kept:
                kept.add(id(value))
                self._register(value)

        def forward(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return self._replay(given)

        parameter = inspect.Parameter.POSITIONAL_OR_KEYWORD
        forward.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, parameter) for name in self._arguments]
        )
        self.forward = forward

    def _register(self, value: Value) -> None:
        assert value.data is not None
        name = self._constants.unique(value.name or "constant")
        self._names[id(value)] = name
        self._values.append(value)
        trains = value.data.dtype in _TRAINABLE and value.data.dim() and id(value) not in self._statistics
        if trains and bool(torch.isfinite(value.data).all()):
            self.register_parameter(name, torch.nn.Parameter(value.data))
        else:
            self.register_buffer(name, value.data)

    def _replay(self, given: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        made = {id(value): tensor for value, tensor in zip(self._entering, given, strict=True)}

        def find(value: Value) -> torch.Tensor:
            if id(value) in made:
                return made[id(value)]
            return getattr(self, self._names[id(value)])

        for step in self.steps:
            with torch.fx.traceback.annotate({ONNX_NODE: step.call.name}):
                results = step.function(step.call.start(find))
            for value, tensor in zip(step.outputs, results if isinstance(results, tuple) else (results,), strict=True):
                if value is not None and tensor is not None:
                    made[id(value)] = getattr(tensor, "tensor", tensor)
        return tuple(unshifted(find(value)) if value.shifted else find(value) for value in self.outputs)


class _Names:
    """Names for buffers: short identifiers that remind of the model's."""

    def __init__(self) -> None:
        self.taken: set[str] = {"forward", "steps", "outputs", "training"}

    def unique(self, name: str) -> str:
        return _identifier(name, self.taken)


def _identifier(name: str, taken: set[str]) -> str:
    """A Python name close to the model's, not taken yet."""
    # As Python reads names: one spelling of a letter, and no superscripts, which regular expressions take for words.
    plain = "".join(one if f"a{one}".isidentifier() else "_" for one in unicodedata.normalize("NFKC", name))
    base = re.sub("_+", "_", plain).strip("_").lower() or "x"
    base = base if base.isidentifier() else f"n{base}"
    made, number = base, 1
    while made in taken or made in _RESERVED or keyword.iskeyword(made) or hasattr(Replay, made):
        number += 1
        made = f"{base}_{number}"
    taken.add(made)
    return made


def _example(shape: Sequence[int], dtype: torch.dtype, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return torch.rand(tuple(shape), generator=generator).to(dtype)  # torch has no random numbers of 8 bits
    return torch.zeros(tuple(shape), dtype=dtype)


def _exported(module: Replay, examples: tuple[torch.Tensor, ...], where: str) -> ExportedProgram:
    try:
        with torch.no_grad(), torch.fx.traceback.preserve_node_meta():
            return torch.export.export(module, examples)
    except OpenNeutronError:
        raise
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UnsupportedError(
            f"torch.export cannot capture the model: {type(error).__name__}: {first}", where=where,
            hint="report the model: its operators were all known",
        ) from error  # fmt: skip
