"""Annotator: the helper with which operator files annotate a node; it knows the specs and how torchao shares observers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import (
    FixedQParamsQuantizationSpec,
    QuantizationAnnotation,
    QuantizationSpec,
    QuantizationSpecBase,
    SharedQuantizationSpec,
)
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

from openneutron.executorch.fx import arguments, is_changed, operator_name, value_of
from openneutron.executorch.quantize.many_classes import is_over_many, reach
from openneutron.executorch.quantize.passes._insert import CHOICE_KEY, MASK_KEY, ROLE_KEY
from openneutron.executorch.quantize.specs import Specs, fixed_parameters

# Activations that are fused into the convolution, linear layer or addition before them: no quantization in between.
FUSED_ACTIVATIONS = frozenset(
    f"aten.{name}.default" for name in ("relu", "relu_", "relu6", "relu6_", "hardtanh", "hardtanh_", "clamp", "clamp_")
)

RANGE_KEY = (
    "openneutron_range"  # metadata of nodes whose largest magnitude is known beforehand: samples may not show it
)

_MASK_STEPS = 128  # of 0 to 1, as many as a choice between 0 and 1 by one comparison has (lower/ops/where.py)

# convert_pt2e folds these into the layer before them after training, so the layer's own result is never stored.
TRAINED_NORMS = frozenset({"aten.batch_norm.default"})


class Annotator:
    """Writes annotations; one per `NeutronQuantizer.annotate` call."""

    def __init__(self, specs: Specs, excluded: Callable[[Node], bool]) -> None:
        self.specs = specs
        self.excluded = excluded
        self.begin(torch.int8)

    def begin(self, dtype: torch.dtype, *, chosen: bool = True, wide: bool = False) -> None:
        """Start a node whose activations are of `dtype`.

        Unless that was `chosen` for it by name, a node that keeps its input's parameters keeps its input's type too,
        where it is `wide`: able to.
        """
        self.dtype, self._chosen, self._able = dtype, chosen, wide

    def activation(self) -> QuantizationSpec:
        """A spec with an observer of its own, of the current node's type."""
        return self.specs.activation(self.dtype)

    def is_annotated(self, node: Node) -> bool:
        """Return whether a quantizer has already annotated the node."""
        return Q_ANNOTATION_KEY in node.meta

    def is_float(self, node: Any) -> bool:
        """Whether the argument is a float32 tensor."""
        if not isinstance(node, Node):
            return False
        value = value_of(node)
        if value is None and node.op == "get_attr":
            value = _attribute(node)
        return isinstance(value, torch.Tensor) and value.dtype == torch.float32

    def write(self, node: Node, inputs: dict[Node, QuantizationSpecBase], output: QuantizationSpecBase | None) -> None:
        """Annotate `node`: a spec for each quantized input, and one for its result unless a fused activation has it."""
        most = node.meta.get(RANGE_KEY)
        if most is not None and self.dtype is torch.int16 and isinstance(output, QuantizationSpec):
            output = fixed_parameters(most / _WIDE_LARGEST, 0, self.dtype)
        if MASK_KEY in node.meta:
            mask = self._mask_spec()
            inputs = {x: mask if isinstance(spec, QuantizationSpec) else spec for x, spec in inputs.items()}
            output = mask if isinstance(output, QuantizationSpec) else output
        node.meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(
            input_qspec_map=dict(inputs), output_qspec=output, _annotated=True
        )

    def _mask_spec(self) -> QuantizationSpecBase:
        if self.dtype is torch.int16:
            return fixed_parameters(1 / _WIDE_LARGEST, 0, self.dtype)
        return fixed_parameters(1 / _MASK_STEPS, -1)

    def result_spec(self, node: Node) -> QuantizationSpecBase | None:
        """Return the spec that a node's result ends up with after all sharing; None if it is not annotated."""
        found = node.meta.get(Q_ANNOTATION_KEY)
        spec = found.output_qspec if found is not None else None
        while isinstance(spec, SharedQuantizationSpec):
            shared = spec.edge_or_node
            if isinstance(shared, Node):
                spec = shared.meta[Q_ANNOTATION_KEY].output_qspec
            else:
                spec = shared[1].meta[Q_ANNOTATION_KEY].input_qspec_map[shared[0]]
        return spec

    def input_spec(self, x: Node) -> QuantizationSpecBase:
        """Return the spec for reading `x`: its producer's parameters if it has some, else a new observer."""
        if _type_of(self.result_spec(x)) == self.dtype:
            return SharedQuantizationSpec(x)
        number = _scalar(x)
        if number is not None:
            # The scale is the number's magnitude over a power of two, so the number stays exact. LiteRT's 16-bit ADD
            # does not take scales that are far apart, so there the stored value is large.
            return fixed_parameters(
                (abs(number) or 1.0) / (_WIDE_UNIT if self.dtype is torch.int16 else 1), 0, self.dtype
            )
        return self.activation()

    def weight_spec(self, weight: Node, channel_axis: int, *, convolution: bool = False) -> QuantizationSpecBase:
        """Return the spec for reading weights: symmetric if they are constant, else that of an activation."""
        if weight.op != "get_attr":
            return self.input_spec(weight)
        value = value_of(weight)
        return self.specs.weight(channel_axis, convolution=convolution, shape=None if value is None else value.shape)

    def nodes_fused_with(self, node: Node) -> list[Node]:
        """Return the nodes fused with `node`: in training its batch norm, then an activation, each the only reader."""
        found: list[Node] = []
        for operators in (TRAINED_NORMS if self.specs.is_qat else frozenset(), FUSED_ACTIVATIONS):
            users = list((found or [node])[-1].users)
            if len(users) == 1 and operator_name(users[0]) in operators:
                if self.is_annotated(users[0]) or self.excluded(users[0]):
                    break
                found.append(users[0])
        return found

    def compute(
        self, node: Node, inputs: Sequence[Any], weights: dict[Node, QuantizationSpecBase] | None = None,
        output: QuantizationSpecBase | None = None,
    ) -> None:  # fmt: skip
        """Annotate an operator with its own output range; a following activation is quantized together with it."""
        if not self.is_float(node):
            return
        specs = {x: self.input_spec(x) for x in inputs if self.is_float(x)}
        specs.update(weights or {})
        output = output or self.activation()
        chain = [node, *self.nodes_fused_with(node)]
        for member in chain:
            self.write(member, specs if member is node else {}, output if member is chain[-1] else None)

    def unary(self, node: Node, output: QuantizationSpecBase | None = None) -> None:
        """Annotate an operator with one input tensor and its own output range."""
        x = node.args[0]
        if self.is_float(x):
            self.write(node, {x: self.input_spec(x)}, output or self.activation())  # type: ignore[index,arg-type]

    def read(self, node: Node) -> None:
        """Annotate an operator whose input is quantized and whose result is not: an index."""
        x = node.args[0]
        if self.is_float(x):
            self.write(node, {x: self.input_spec(x)}, None)  # type: ignore[index,arg-type]

    def fixed_output(self, node: Node, scale: float, zero_point: int) -> None:
        """Annotate an operator whose output range is known beforehand; LiteRT's 16-bit kernels only accept 2^-15."""
        self.unary(
            node,
            fixed_parameters(scale, zero_point)
            if self.dtype is torch.int8
            else fixed_parameters(2.0**-15, 0, self.dtype),
        )

    def probabilities(self, node: Node, scale: float, zero_point: int) -> None:
        """Annotate a softmax.

        With many classes it is 8 bits wide in a 16-bit network and reads values below the maximum.
        """
        x = node.args[0]
        if self.dtype is torch.int16 and is_over_many(node) and isinstance(x, Node) and self.is_float(x):
            self.write(node, {x: fixed_parameters(reach(node) / 255, 127)}, fixed_parameters(scale, zero_point))
        else:
            self.fixed_output(node, scale, zero_point)

    def share_parameters(self, node: Node, inputs: Sequence[Any] | None = None) -> None:
        """Give every input and the result the same parameters: shape-only operators, pooling, concatenation.

        Fixed parameters (softmax, sigmoid) are only kept when every input has the same ones. Otherwise the other inputs
        would be clipped to that range, so all of them get a new observer and the fixed ones are requantized.
        """
        tensors = [x for x in (node.args[:1] if inputs is None else inputs) if self.is_float(x)]
        if not tensors:
            return
        if not self._chosen:
            known = {_type_of(self.result_spec(x)) for x in tensors} - {None}
            self.dtype = torch.int16 if self._able and known == {torch.int16} else torch.int8 if known else self.dtype
        specs = [spec if _type_of(spec := self.result_spec(x)) == self.dtype else None for x in tensors]
        free = [x for x, spec in zip(tensors, specs, strict=True) if not isinstance(spec, FixedQParamsQuantizationSpec)]
        # An input that is quantized here comes first. torchao joins all readers of a tensor, and a reader that shares
        # with something computed from the same tensor would create a cycle.
        fresh = [x for x, spec in zip(tensors, specs, strict=True) if spec is None and x.op != "get_attr"]
        if free or len({id(spec) if spec is None else spec for spec in specs}) > 1:
            anchor = (fresh or free or tensors)[0]
            # A constant's own scale is no scale for what is compared or joined with it.
            first = self.input_spec(anchor) if free and anchor.op != "get_attr" else self.activation()
        else:
            anchor, first = tensors[0], self.input_spec(tensors[0])
        share = SharedQuantizationSpec((anchor, node))
        self.write(node, {anchor: first, **{x: share for x in tensors if x is not anchor}}, share)

    def choice(self, node: Node) -> bool:
        """Annotate a product or the sum of a choice between two values; returns whether it is one.

        Both values, their products with 0 or 1 and the sum share parameters, as parts of a concatenation do: calibration
        may never take one of the values, and would find no range for it.
        """
        joined = node if operator_name(node) == "aten.add.Tensor" else next(iter(node.users), node)
        products = joined.args[:2]
        if not all(isinstance(one, Node) and CHOICE_KEY in one.meta for one in (node, joined, *products)):
            return False
        sides = [one.args[0] for one in products]  # type: ignore[union-attr]
        anchor = (sides[0], products[0])
        share = SharedQuantizationSpec(anchor)  # type: ignore[arg-type]
        if node is joined:
            self.write(node, dict.fromkeys(products, share), share)  # type: ignore[arg-type]
            return True
        first, second = (self.result_spec(side) for side in sides)  # type: ignore[arg-type]
        mixed = isinstance(first, FixedQParamsQuantizationSpec) and first != second
        x, factor = node.args[:2]
        mine = share if node is not products[0] else self.activation() if mixed else self.input_spec(x)  # type: ignore[arg-type]
        self.write(node, {x: mine, factor: self.input_spec(factor)}, share)  # type: ignore[dict-item,arg-type]
        return True

    def argument(self, node: Node, name: str) -> Any:
        """Return an argument of the node by its name in the schema."""
        return arguments(node)[name]


def share_roles(model: GraphModule) -> None:
    """Let the steps of a recurrent layer share observers: with equal scales they become one loop body.

    A buffer that the graph changes is read with the scale it is written with, so that it can stay quantized between calls.
    """
    _name_states(model)
    first: dict[Any, Any] = {}  # role → the first edge or node that has it
    for node in model.graph.nodes:
        found = node.meta.get(Q_ANNOTATION_KEY)
        if found is None:
            continue
        for source in found.input_qspec_map:
            # The initial state has the role of the later states.
            role = source.meta.get(ROLE_KEY) if source.op == "get_attr" else None
            if role is None:
                continue
            known = _fixed_role(model, role)
            if known is not None:
                found.input_qspec_map[source] = known
            elif role not in first:
                first[role] = (source, node)
            elif isinstance(found.input_qspec_map[source], QuantizationSpec):
                found.input_qspec_map[source] = SharedQuantizationSpec(first[role])
        role = node.meta.get(ROLE_KEY)
        if role is not None and isinstance(found.output_qspec, QuantizationSpec):
            anchor = first.setdefault(role, node)
            if anchor is not node:
                found.output_qspec = SharedQuantizationSpec(anchor)


def _name_states(model: GraphModule) -> None:
    """Give each changed buffer and the value written to it the same role."""
    for call in model.graph.nodes:
        if operator_name(call) != "aten.copy_.default":
            continue
        buffer, value = call.args[:2]
        if not (isinstance(buffer, Node) and isinstance(value, Node) and buffer.op == "get_attr"):
            continue
        role = _maker(value).meta.setdefault(ROLE_KEY, ("state", buffer.target))
        for one in model.graph.find_nodes(op="get_attr", target=buffer.target):
            one.meta[ROLE_KEY] = role


def _maker(value: Node) -> Node:
    """Return the node that defines a value's parameters: operators that only move data keep those of their input."""
    found = value.meta.get(Q_ANNOTATION_KEY)
    while (
        found is not None and isinstance(found.output_qspec, SharedQuantizationSpec) and len(found.input_qspec_map) == 1
    ):
        (value,) = found.input_qspec_map
        found = value.meta.get(Q_ANNOTATION_KEY)
    return value


def _fixed_role(model: GraphModule, role: Any) -> FixedQParamsQuantizationSpec | None:
    """Return the fixed parameters for results of this role, such as those of a tanh; None if they are calibrated."""
    for node in model.graph.nodes:
        found = node.meta.get(Q_ANNOTATION_KEY)
        if found is not None and node.meta.get(ROLE_KEY) == role:
            return found.output_qspec if isinstance(found.output_qspec, FixedQParamsQuantizationSpec) else None
    return None


_WIDE_LARGEST = (1 << 15) - 1
_WIDE_UNIT = 1 << 14  # stored value of a constant among 16-bit activations


def _type_of(spec: QuantizationSpecBase | None) -> torch.dtype | None:
    """Return the dtype a spec stores; None for no spec."""
    return getattr(spec, "dtype", None)


def _scalar(node: Node) -> float | None:
    """Return the value of a one-element constant, None for anything else."""
    found = _attribute(node) if node.op == "get_attr" and not is_changed(node) else None
    return float(found) if isinstance(found, torch.Tensor) and found.numel() == 1 else None


def _attribute(node: Node) -> Any:
    """Return the attribute that a get_attr node reads, None if the module no longer has it."""
    found: Any = node.graph.owning_module
    for part in str(node.target).split("."):
        found = getattr(found, part, None)
    return found
