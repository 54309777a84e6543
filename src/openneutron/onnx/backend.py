"""`onnx.backend.base.Backend`: ONNX's standard interface, through which ONNX's own tests run on the importer.

Example:
    >>> from openneutron.onnx import backend
    >>> backend.run_model(onnx.load("model.onnx"), [image])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from openneutron.errors import OptionError
from openneutron.extras import need
from openneutron.onnx.elaborate import Elaborator
from openneutron.onnx.ops import rule_for
from openneutron.onnx.read import opset_of, read_model
from openneutron.onnx.schemas import is_function
from openneutron.onnx.tensors import from_numpy, to_numpy
from openneutron.onnx.values import Value, to_unsigned

_base: Any = need("onnx.backend.base")


class Representation(_base.BackendRep):
    """A model ready to run: in torch, on the host, as the importer converts it."""

    def __init__(self, model: Any) -> None:
        self.model = model
        stored = {one.name for one in model.graph.initializer}
        self.inputs = [one for one in model.graph.input if one.name not in stored]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return the outputs for a list of arrays in the order of the inputs, a dict by name, or one array."""
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        else:
            items = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            given = {one.name: item for one, item in zip(self.inputs, items, strict=False)}
        missing = [
            one.name for one in self.inputs if one.name not in given and one.type.WhichOneof("value") != "optional_type"
        ]
        if missing:
            raise OptionError(f"input {missing[0]!r} is missing", hint="give an array for each input")
        opsets = {one.domain: int(one.version) for one in self.model.opset_import}
        elaborator = Elaborator(opsets)
        values = {name: _value(item) for name, item in given.items()}
        outputs = elaborator.graph(self.model.graph, values)
        return tuple(_array(one) for one in outputs)


def _value(item: Any) -> Value:
    if isinstance(item, (list, tuple)):
        return Value(items=[_value(one) for one in item])
    return Value(absent=True) if item is None else Value(data=from_numpy(np.asarray(item)))


def _array(value: Value) -> Any:
    if value.items is not None:
        return [_array(one) for one in value.items]
    if value.absent:
        return None
    assert value.data is not None
    return to_numpy(to_unsigned(value.data) if value.shifted else value.data)


class OpenNeutronBackend(_base.Backend):
    """ONNX's interface to the importer."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Return whether the importer supports every operator of the model, directly or by ONNX's definition."""
        return cls.supports_device(device) and not _unknown_operators(model.graph, opset_of(model))

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> Representation:
        """Check a model and prepare it to run."""
        if not cls.supports_device(device):
            raise OptionError(f"device is {device!r}", hint="the importer computes on the CPU")
        return Representation(read_model(model.SerializeToString(), name=model.graph.name))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Return the outputs of a model."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def run_node(
        cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Return the outputs of one node of the newest opset, or of `opset_imports`."""
        onnx = need("onnx")
        arrays = dict(inputs) if isinstance(inputs, Mapping) else None
        if arrays is None:
            names = [name for name in node.input if name]
            arrays = dict(zip(names, inputs if isinstance(inputs, Sequence) else [inputs], strict=True))
        imports = kwargs.get("opset_imports") or [onnx.helper.make_opsetid("", onnx.defs.onnx_opset_version())]
        elaborator = Elaborator({one.domain: int(one.version) for one in imports})
        made = elaborator.node(node, {name: _value(item) for name, item in arrays.items()})
        return tuple(_array(one) for one in made)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether the device is the host's CPU."""
        return device.split(":")[0] == "CPU"


def _unknown_operators(graph: Any, version: int) -> list[str]:
    """Return the operators that are neither imported nor defined by ONNX through others."""
    found = []
    for node in graph.node:
        if rule_for(node.domain, node.op_type) is None and not is_function(node.op_type, version, node.domain):
            found.append(node.op_type)
    return found


is_compatible = OpenNeutronBackend.is_compatible
prepare = OpenNeutronBackend.prepare
run_model = OpenNeutronBackend.run_model
run_node = OpenNeutronBackend.run_node
supports_device = OpenNeutronBackend.supports_device
__all__ = [
    "OpenNeutronBackend",
    "Representation",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]
