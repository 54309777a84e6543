"""Elaboration: turns a model into a list of calls, with constants folded, branches chosen, loops unrolled, functions inlined.

With all inputs given as data this computes the model; with shapes alone it finds the calls to make at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import torch

from openneutron.errors import FormatError, InternalError, OpenNeutronError, UnsupportedError
from openneutron.executorch.upstream.names import FakeTensorMode
from openneutron.extras import need
from openneutron.onnx.call import Call, stored_moves
from openneutron.onnx.ops import OWN, Rule, rule_for
from openneutron.onnx.read import describe_node
from openneutron.onnx.schemas import schema_of
from openneutron.onnx.tensors import WIDENED, torch_tensor, type_name
from openneutron.onnx.values import Step, Stored, Value

# Largest constant that is computed during import: 1 GiB as float32.
_LARGEST_CONSTANT = 1 << 28
# Most calls after unrolling: a loop that makes more is no model for an NPU.
_MOST_STEPS = 100_000
_DEFAULT = ("", "ai.onnx")


class Elaborator:
    """Walks a model; `steps` are the calls that depend on its inputs, in order."""

    def __init__(
        self,
        opsets: Mapping[str, int],
        *,
        widen: bool = False,
        keep: bool = False,
        where: str = "",
        sizes_given: bool = False,
    ) -> None:
        self.opsets = {("" if name in _DEFAULT else name): version for name, version in opsets.items()}
        self.widen = widen
        self.keep = keep  # keep calls whose rule says so
        self.where = where
        # What to do about shapes that contradict each other.
        self.hint = (
            "give sizes that the network takes (many take multiples of 32 alone), or export it again"
            if sizes_given
            else "export it again"
        )
        self.steps: list[Step] = []
        self.notes: list[str] = []  # what the user should know of the import
        self._count = 0

    @cached_property
    def mode(self) -> FakeTensorMode:
        """Fake tensors' mode, made on first use, because torch imports its compiler for it."""
        return FakeTensorMode()

    def graph(self, graph: Any, values: Mapping[str, Value]) -> list[Value]:
        """Return the outputs of a graph; `values` are its inputs and the values of surrounding graphs that it reads."""
        known: dict[str, Value] = dict(values)
        for proto in graph.initializer:
            if proto.name not in known:
                known[proto.name] = self.value_of(proto)
        for sparse in graph.sparse_initializer:
            known[sparse.values.name] = self._dense(sparse)
        for node in graph.node:
            for name, value in zip(node.output, self.node(node, known), strict=False):
                if name:
                    known[name] = value
        missing = [one.name for one in graph.output if one.name not in known]
        if missing:
            raise FormatError(f"nothing makes the output `{missing[0]}`", where=self.where, hint="export it again")
        return [known[one.name] for one in graph.output]

    def value_of(self, proto: Any) -> Value:
        """Return a stored tensor as a value."""
        tensor = torch_tensor(proto)
        if self.widen and tensor.dtype in WIDENED:
            tensor = tensor.to(WIDENED[tensor.dtype])
        name = type_name(proto.data_type)
        return Value(data=tensor, name=proto.name, kind=name if name.endswith(("INT4", "INT2")) else "")

    def input(self, shape: Sequence[int], dtype: torch.dtype, name: str) -> Value:
        """Return a value that is only known at run time."""
        with self.mode:
            return Value(fake=torch.empty(tuple(shape), dtype=dtype), name=name)

    def node(self, node: Any, known: Mapping[str, Value]) -> list[Value]:
        """Return the results of a node."""
        self._count += 1
        if self._count > _MOST_STEPS:
            raise UnsupportedError(
                f"written out, the model has more than {_MOST_STEPS:,} calls", where=self.where,
                hint="give its loops fewer iterations",
            )  # fmt: skip
        try:
            inputs = [self._read(name, known) for name in node.input]
            domain = "" if node.domain in _DEFAULT else node.domain
            rule = rule_for(domain, node.op_type)
            if rule is None:
                return self._compute_definition(node, inputs)
            name = node.name or next((one for one in node.output if one), node.op_type)
            call = Call(node, inputs, self.opsets.get(domain, 1), name=name, widen=self.widen, keep=self.keep)
            made = list(rule.function(call, self, known)) if rule.structural else self._apply(rule, call)
        except OpenNeutronError as error:
            raise self._error_at(error, node) from error
        except RecursionError as error:
            raise self._error_at(FormatError("graphs lie too deep inside each other"), node) from error
        except Exception as error:
            message = " ".join(str(error).split()) or type(error).__name__
            raise self._error_at(
                FormatError(f"its inputs and attributes contradict each other: {message[:300]}", hint=self.hint),
                node,
            ) from error
        return made

    def _read(self, name: str, known: Mapping[str, Value]) -> Value | None:
        if not name:
            return None
        if name not in known:
            raise FormatError(f"nothing makes its input `{name}`", hint="export the model again")
        return known[name]

    def compute(self, call: Call, inputs: list[Value], function: Callable[[Call], Any]) -> list[Value]:
        """Apply `function` to values on behalf of a call that works on graphs or sequences."""
        inner = Call(call.node, list(inputs), call.version, name=call.name, widen=self.widen, keep=self.keep)
        return self._apply(Rule("", "", function), inner)

    def _apply(self, rule: Rule, call: Call) -> list[Value]:
        if call.moves_stored(rule.name):
            rule = replace(rule, function=stored_moves(rule.function))
        if all(value is None or value.is_constant for value in call.inputs):
            if rule.grows:
                self._check_growth(rule, call)
            results = [_constant(one) for one in self._compute(rule, call.start(_real))]
            if not rule.keep or not self.keep:
                return results
            data = [value.data for value in results]
        else:
            data = []
        with self.mode:
            results = [_dynamic(one) for one in self._compute(rule, call.start(self._fake))]
        for index, tensor in enumerate(data):
            results[index].known = tensor
        self.steps.append(Step(call, rule.function, list(results)))
        return results

    def _compute(self, rule: Rule, call: Call) -> tuple[Any, ...]:
        with torch.no_grad():
            made = rule.function(call)
        return made if isinstance(made, tuple) else (made,)

    def _check_growth(self, rule: Rule, call: Call) -> None:
        with self.mode:
            made = self._compute(rule, call.start(self._fake))
        for one in made:
            tensor = one.tensor if isinstance(one, Stored) else one
            if prod(tensor.shape) > _LARGEST_CONSTANT:
                raise UnsupportedError(
                    f"its result is a constant of shape {list(tensor.shape)}", hint="no such tensor fits the chip"
                )

    def _fake(self, value: Value) -> torch.Tensor:
        if value.fake is None:
            assert value.data is not None
            value.fake = self.mode.from_tensor(value.data)
        return value.fake

    def _compute_definition(self, node: Any, inputs: list[Value | None]) -> list[Value]:
        """Compute a node by ONNX's definition of its operator through others."""
        function = self._function(node, inputs)
        if function is None:
            domain = "" if node.domain in _DEFAULT else node.domain
            what = f"operator {node.op_type}" + (f" of domain {domain!r}" if domain else "")
            if domain in ("", OWN):
                raise UnsupportedError(f"{what} is not imported", hint="docs/onnx.md lists what is")
            raise UnsupportedError(
                f"{what} is a custom one, and the model does not define it",
                hint="export without custom operators, or with their definitions as functions",
            )
        attributes = {one.name: one for one in node.attribute}
        known: dict[str, Value] = {}
        for name, value in zip(function.input, inputs, strict=False):
            if value is not None:
                known[name] = value
        for one in (*function.attribute_proto, *self._defaults(node)):
            attributes.setdefault(one.name, one)
        opsets, self.opsets = self.opsets, {**self.opsets, **_opsets(function.opset_import)}
        try:
            for inner in function.node:
                bound = _bind_attributes(inner, attributes, node)
                present = [name if name in known else "" for name in bound.input]
                if present != list(bound.input):
                    del bound.input[:]
                    bound.input.extend(present)
                for name, value in zip(bound.output, self.node(bound, known), strict=False):
                    if name:
                        known[name] = value
        finally:
            self.opsets = opsets
        return [known.get(name, Value(absent=True)) for name in function.output]

    def _function(self, node: Any, inputs: list[Value | None]) -> Any:
        onnx = need("onnx")
        domain = "" if node.domain in _DEFAULT else node.domain
        schema = schema_of(node.op_type, self.opsets.get(domain, 1), domain)
        if schema is None:
            return None
        versions = [version for version in schema.function_opset_versions if version <= self.opsets.get(domain, 1)]
        if versions:
            found = schema.get_function_with_opset_version(max(versions))
        else:
            versions = [
                version for version in schema.context_dependent_function_opset_versions
                if version <= self.opsets.get(domain, 1)
            ]  # fmt: skip
            if not versions:
                return None
            types = [self._type_of(value) for value in inputs]
            found = schema.get_context_dependent_function_with_opset_version(
                max(versions), node.SerializeToString(), [one.SerializeToString() for one in types]
            )
        function = onnx.FunctionProto()
        function.ParseFromString(found)
        return function

    def _defaults(self, node: Any) -> list[Any]:
        """Return the default attributes of an operator."""
        onnx = need("onnx")
        domain = "" if node.domain in _DEFAULT else node.domain
        schema = onnx.defs.get_schema(node.op_type, self.opsets.get(domain, 1), domain)
        return [one.default_value for one in schema.attributes.values() if one.default_value.name]

    def _type_of(self, value: Value | None) -> Any:
        onnx = need("onnx")
        if value is None or value.items is not None or value.absent:
            return onnx.TypeProto()
        names = {torch_dtype: code for code, torch_dtype in _codes(onnx).items()}
        like = value.like
        dtype = torch.uint8 if value.shifted and like.dtype == torch.int8 else like.dtype
        return onnx.helper.make_tensor_type_proto(names[dtype], list(like.shape))

    def _dense(self, sparse: Any) -> Value:
        if prod(sparse.dims) > _LARGEST_CONSTANT:
            raise UnsupportedError(f"sparse tensor {sparse.values.name!r} is too large", where=self.where)
        values, indices = torch_tensor(sparse.values), torch_tensor(sparse.indices)
        dense = torch.zeros(prod(sparse.dims), dtype=values.dtype)
        shape = tuple(sparse.dims)
        if indices.dim() == 2:
            strides = [prod(shape[at + 1 :]) for at in range(len(shape))]
            indices = (indices * torch.tensor(strides)).sum(1)
        if indices.numel() and not 0 <= int(indices.min()) <= int(indices.max()) < dense.numel():
            raise FormatError(f"sparse tensor {sparse.values.name!r} has indices outside its shape", where=self.where)
        dense[indices] = values
        return Value(data=dense.reshape(shape))

    def _error_at(self, error: OpenNeutronError, node: Any) -> OpenNeutronError:
        if error.where:
            return error
        made = type(error)(f"{describe_node(node)}: {error.message}", where=self.where or "<model>", hint=error.hint)
        return made


def _real(value: Value) -> torch.Tensor:
    if value.data is None:
        raise InternalError(f"constant {value.name!r} has no data")
    return value.data


def _constant(made: Any) -> Value:
    return _value(made, "data")


def _dynamic(made: Any) -> Value:
    return _value(made, "fake")


def _value(made: Any, field: str) -> Value:
    if made is None:
        return Value(absent=True)
    if not isinstance(made, Stored):
        return Value(**{field: made})
    return Value(**{field: made.tensor}, shifted=made.shifted, scale=made.scale, zero_point=made.zero_point)


def _opsets(imports: Any) -> dict[str, int]:
    return {("" if one.domain in _DEFAULT else one.domain): int(one.version) for one in imports}


def _bind_attributes(node: Any, attributes: Mapping[str, Any], caller: Any) -> Any:
    """Return a node of a function, with the caller's attributes substituted."""
    bound = type(node).FromString(node.SerializeToString())
    bound.name = caller.name or next((one for one in caller.output if one), caller.op_type)
    kept = []
    for one in bound.attribute:
        if one.ref_attr_name:
            if one.ref_attr_name in attributes:
                given = type(one).FromString(attributes[one.ref_attr_name].SerializeToString())
                given.name = one.name
                kept.append(given)
        else:
            for inner in ([one.g] if one.HasField("g") else []) + list(one.graphs):
                for index, deep in enumerate(inner.node):
                    inner.node[index].CopyFrom(_bind_attributes(deep, attributes, caller))
            kept.append(one)
    kept = [type(one).FromString(one.SerializeToString()) for one in kept]
    del bound.attribute[:]
    bound.attribute.extend(kept)
    return bound


def _codes(onnx: Any) -> dict[int, torch.dtype]:
    from openneutron.onnx.tensors import torch_type

    found: dict[torch.dtype, int] = {}
    for code in onnx.TensorProto.DataType.values():
        try:
            found.setdefault(torch_type(code), code)
        except UnsupportedError:
            continue
    return {code: dtype for dtype, code in found.items()}
