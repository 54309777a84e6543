"""Refine: what a quantized network gains when its layers see the data once more, in the order of execution.

All samples go through the quantized graph together, one node after the other. When a layer is reached, everything before
it has been refined already, so it can make up for what is left of their error:

    x (quantized, refined) ──► layer ──► round its weights for x          (`rounding`)
                                     ──► shift its bias to float's mean   (bias correction, Nagel et al. 2019, section 4.2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves

from openneutron.errors import UnsupportedError
from openneutron.executorch.fx import arguments, is_dequantize, operator_name, value_of
from openneutron.executorch.quantize.improve.layers import OPERATORS, Layer, bias_of
from openneutron.executorch.quantize.improve.rounding import LARGEST, gram, inputs_of_a_group, rounded
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of

SAMPLES: Final = 64  # a mean over 64 samples is within an eighth of a deviation
MEMORY: Final = 1 << 30  # bytes for all samples' values of one moment; fewer samples where they are large
_LIVE: Final = 4  # values of the largest size that are alive at one time: a layer's input, result, and a shortcut


@dataclass(frozen=True)
class Refined:
    """How many layers have new biases and new weights, and which kept their nearest rounding."""

    corrected: int = 0
    rounded: int = 0
    too_large: tuple[str, ...] = ()

    def notes(self) -> tuple[str, ...]:
        """What a report says about it."""
        said = []
        if self.corrected:
            said.append(f"{self.corrected} biases corrected")
        if self.rounded:
            said.append(f"weights of {self.rounded} layers rounded for the calibration data")
        if self.too_large:
            said.append(f"{', '.join(self.too_large)}: rounded to nearest, more than {LARGEST:,} inputs")
        return tuple(said)


def refine(
    quantized: GraphModule,
    prepared: GraphModule,
    batches: Sequence[tuple[torch.Tensor, ...]],
    *,
    correct_bias: bool = False,
    adaround: bool = False,
) -> Refined:
    """Refine the converted module in place; `prepared` is the calibrated one that it came from, which runs in float.

    Example:
        >>> quantized = convert_pt2e(copy.deepcopy(prepared))
        >>> refine(quantized, prepared, images, correct_bias=True).corrected
        30
    """
    _check_stateless(quantized)
    samples = list(batches[: _count(quantized, batches)])
    with torch.no_grad():
        wanted = _Means(prepared).of(samples) if correct_bias else {}
        found = _walk(quantized, prepared, samples, wanted, adaround)
    quantized.graph.eliminate_dead_code()
    quantized.recompile()
    return found


def _walk(
    model: GraphModule,
    prepared: GraphModule,
    samples: list[tuple[torch.Tensor, ...]],
    wanted: dict[str, torch.Tensor],
    adaround: bool,
) -> Refined:
    floats = {node.name: node for node in prepared.graph.nodes}
    values: dict[Node, Any] = {}
    inputs = iter(range(len(samples[0])))
    done = Refined()
    for node in list(model.graph.nodes):
        if node.op == "placeholder":
            position = next(inputs)
            values[node] = _Each([sample[position] for sample in samples])
        elif node.op == "get_attr":
            values[node] = _attribute(model, node)
        elif node.op == "call_function":
            layer = _quantized_layer(node)
            if layer is not None and adaround:
                done = _round(model, prepared, layer, floats.get(node.name), values, node.name in wanted, done)
            values[node] = _run(node, values, len(samples))
            if layer is not None and node.name in wanted and isinstance(values[node], _Each):
                _correct(model, layer, wanted[node.name], values)
                done = replace(done, corrected=done.corrected + 1)
        for source in node.all_input_nodes:
            if source in values and all(user in values for user in source.users):
                del values[source]
    return done


class _Each(list[Any]):
    """A value of each sample; anything else is the same for all."""


def _run(node: Node, values: dict[Node, Any], count: int) -> Any:
    def at(number: int) -> Any:
        def of(source: Node) -> Any:
            value = values[source]
            return value[number] if isinstance(value, _Each) else value

        return node.target(*map_arg(node.args, of), **map_arg(node.kwargs, of))  # type: ignore[operator]

    if any(isinstance(values[source], _Each) for source in node.all_input_nodes):
        return _Each([at(number) for number in range(count)])
    return at(0)


def _round(
    model: GraphModule, prepared: GraphModule, layer: Layer, origin: Node | None, values: dict[Node, Any],
    centred: bool, done: Refined,
) -> Refined:  # fmt: skip
    """Round a layer's weights for what it reads; where its bias is corrected, only the spread of that counts."""
    weight = _float_weight(prepared, origin)
    stored, read = layer.weight.args[0], values[layer.node.args[0]]  # type: ignore[index]
    if weight is None or not isinstance(stored, Node) or not isinstance(read, _Each) or layer.output_axis != 0:
        return done
    if inputs_of_a_group(layer, weight) > LARGEST:
        return replace(done, too_large=(*done.too_large, layer.node.name))
    steps = rounded(layer, weight, _scales(model, layer.weight, weight), gram(layer, weight, read, centred=centred))
    with model.graph.inserting_before(layer.weight):
        made = add_constant(model, f"_rounded_{layer.node.name}", steps)
    layer.weight.replace_input_with(stored, made)
    values[made] = steps
    values |= {one: _attribute(model, one) for one in layer.weight.all_input_nodes if one.op == "get_attr"}
    values[layer.weight] = _run(layer.weight, values, 1)
    return replace(done, rounded=done.rounded + 1)


def _scales(model: GraphModule, dequantize: Node, weight: torch.Tensor) -> torch.Tensor:
    """The scale of each output channel."""
    given = arguments(dequantize)
    scale = given.get("scales", given.get("scale"))
    found = _attribute(model, scale) if isinstance(scale, Node) else scale
    return torch.as_tensor(found, dtype=torch.float64).reshape(-1).expand(weight.shape[0])


def _correct(model: GraphModule, layer: Layer, wanted: torch.Tensor, values: dict[Node, Any]) -> None:
    node = layer.node
    missing = wanted - _mean([values[node]], layer.channel_axis)
    old = bias_of(model, layer)
    new = missing if old is None else old.double() + missing
    dtype = values[node][0].dtype
    with model.graph.inserting_before(node):
        made = add_constant(model, f"_corrected_{node.name}", new.to(dtype))
    given = list(node.args)
    given[2:3] = [made]
    node.args = tuple(given)
    node.kwargs = {name: value for name, value in node.kwargs.items() if name != "bias"}
    values[made] = new.to(dtype)
    shape = [1] * values[node][0].dim()
    shape[layer.channel_axis] = -1
    shift = missing.to(dtype).reshape(shape)
    values[node] = _Each([value + shift for value in values[node]])


class _Means(Interpreter):
    """Runs the float network and sums up what each layer gives for each channel; observers look away."""

    def __init__(self, prepared: GraphModule) -> None:
        super().__init__(prepared)
        self._found: dict[str, list[torch.Tensor]] = {}

    def of(self, samples: Sequence[tuple[torch.Tensor, ...]]) -> dict[str, torch.Tensor]:
        """The mean of each layer's channels by the layer's name."""
        for sample in samples:
            self.run(*sample)
        return {name: torch.stack(each).mean(0) for name, each in self._found.items()}

    def run_node(self, n: Node) -> Any:
        if n.op == "call_module" and len(n.args) == 1 and isinstance(n.args[0], Node):
            return self.env[n.args[0]]
        value = super().run_node(n)
        if operator_name(n) in OPERATORS:
            axis = -1 if value_of(n) is not None and operator_name(n) == "aten.linear.default" else 1
            self._found.setdefault(n.name, []).append(_mean([[value]], axis))
        return value


def _mean(groups: Sequence[Sequence[torch.Tensor]], axis: int) -> torch.Tensor:
    """The mean of each channel over samples and positions."""
    values = [value for group in groups for value in group]
    others = [dim for dim in range(values[0].dim()) if dim != axis % values[0].dim()]
    return torch.stack([value.double().mean(others) if others else value.double() for value in values]).mean(0)


def _quantized_layer(node: Node) -> Layer | None:
    """A layer whose weights are a dequantized constant; `weight` is the dequantize node."""
    if operator_name(node) not in OPERATORS:
        return None
    given = arguments(node)
    weight, bias = given["weight"], given["bias"]
    if not isinstance(weight, Node) or not is_dequantize(weight) or weight.args[0].op != "get_attr":  # type: ignore[union-attr]
        return None
    if len(weight.users) > 1 or (isinstance(bias, Node) and bias.op != "get_attr"):
        return None
    return Layer(node, weight, bias, int(given.get("groups") or 1))


def _float_weight(prepared: GraphModule, node: Node | None) -> torch.Tensor | None:
    source = node.args[1] if node is not None and len(node.args) > 1 else None
    while isinstance(source, Node) and source.op == "call_module":
        source = source.args[0]  # type: ignore[assignment]
    return tensor_of(prepared, source) if isinstance(source, Node) else None


def _attribute(model: GraphModule, node: Node) -> Any:
    found: Any = model
    for part in str(node.target).split("."):
        found = getattr(found, part)
    return found


def _check_stateless(model: GraphModule) -> None:
    """Refuse a model whose runs depend on those before: samples would see each other's state."""
    for node in model.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        first = node.args[0] if node.args else None
        if schema is not None and schema.is_mutable and isinstance(first, Node) and first.op == "get_attr":
            raise UnsupportedError(
                f"the model keeps state in {first.target}, so biases and rounding cannot be found from single samples",
                hint="leave correct_bias and adaround out",
            )


def _count(model: GraphModule, batches: Sequence[tuple[torch.Tensor, ...]]) -> int:
    """How many samples fit: all values of one moment are kept for each."""
    sizes = [
        value.numel() * value.element_size()
        for node in model.graph.nodes
        for value in tree_leaves(value_of(node))
        if node.op == "call_function" and isinstance(value, torch.Tensor)
    ]
    most = MEMORY // (_LIVE * max(sizes, default=1))
    return max(1, min(SAMPLES, len(batches), most))
