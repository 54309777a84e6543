"""Refine: improves the weights and biases of a quantized network, layer by layer in the order of execution.

All samples go through the quantized graph together, one node after the other. Layers before the current one are already
refined, so each layer can compensate for their remaining error:

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

from openneutron.errors import UnsupportedError
from openneutron.executorch.fx import arguments, is_dequantize, operator_name, value_of
from openneutron.executorch.quantize.improve.rounding import LARGEST, fit_scales, gram, inputs_of_a_group, round_weights
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._layers import OPERATORS, Layer, bias_of
from openneutron.executorch.upstream.names import schema_of, tree_leaves

SAMPLES: Final = 64  # the mean of 64 samples is within an eighth of a standard deviation
MEMORY: Final = 1 << 30  # bytes for the live values of all samples; fewer samples are used if they are large
_LIVE: Final = 4  # assumed number of live tensors of the largest size: a layer's input, its result and a shortcut


@dataclass(frozen=True)
class Refined:
    """The number of layers with new biases and weights, and those that kept rounding to nearest."""

    corrected: int = 0
    rounded: int = 0
    too_large: tuple[str, ...] = ()

    def notes(self) -> tuple[str, ...]:
        """Describe the result for a report."""
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
    """Refine the converted module in place; `prepared` is the calibrated float module that it was made from.

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
                done = _round(model, prepared, layer, floats.get(node.name), values, done)
            values[node] = _run(node, values, len(samples))
            if layer is not None and node.name in wanted and isinstance(values[node], _Each):
                _correct(model, layer, wanted[node.name], values)
                done = replace(done, corrected=done.corrected + 1)
        for source in node.all_input_nodes:
            if source in values and all(user in values for user in source.users):
                del values[source]
    return done


class _Each(list[Any]):
    """One value per sample; any other value is common to all samples."""


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
    model: GraphModule, prepared: GraphModule, layer: Layer, origin: Node | None, values: dict[Node, Any], done: Refined
) -> Refined:
    """Round a layer's weights for its inputs."""
    weight = _float_weight(prepared, origin)
    read = values[layer.node.args[0]]  # type: ignore[index]
    if weight is None or not isinstance(read, _Each) or layer.output_axis != 0:
        return done
    if inputs_of_a_group(layer, weight) > LARGEST:
        return replace(done, too_large=(*done.too_large, layer.node.name))
    moments = gram(layer, weight, read)
    together = "scales" not in arguments(layer.weight)
    scales = fit_scales(layer, weight, _scales(model, layer.weight, weight), moments, together=together)
    # The program keeps scales of single precision.
    scales = scales.float().double()
    steps = round_weights(layer, weight, scales, moments)
    with model.graph.inserting_before(layer.weight):
        made = add_constant(model, f"_rounded_{layer.node.name}", steps)
        fitted = float(scales[0]) if together else add_constant(model, f"_fitted_{layer.node.name}", scales)
    layer.weight.args = (made, fitted, *layer.weight.args[2:])
    values[made] = steps
    values |= {one: _attribute(model, one) for one in layer.weight.all_input_nodes if one.op == "get_attr"}
    values[layer.weight] = _run(layer.weight, values, 1)
    return replace(done, rounded=done.rounded + 1)


def _scales(model: GraphModule, dequantize: Node, weight: torch.Tensor) -> torch.Tensor:
    """Return the scale of each output channel."""
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
    """Runs the float network without its observers and accumulates the mean of each layer's channels."""

    def __init__(self, prepared: GraphModule) -> None:
        super().__init__(prepared)
        self._found: dict[str, list[torch.Tensor]] = {}

    def of(self, samples: Sequence[tuple[torch.Tensor, ...]]) -> dict[str, torch.Tensor]:
        """Return the channel means by layer name."""
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
    """Return the mean of each channel over samples and positions."""
    values = [value for group in groups for value in group]
    others = [dim for dim in range(values[0].dim()) if dim != axis % values[0].dim()]
    return torch.stack([value.double().mean(others) if others else value.double() for value in values]).mean(0)


def _quantized_layer(node: Node) -> Layer | None:
    """Return the layer of a node whose weights are a dequantized constant; `weight` is the dequantize node."""
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
    """Refuse a model with state: samples are run together and would share it."""
    for node in model.graph.nodes:
        schema = schema_of(node.target)
        first = node.args[0] if node.args else None
        if schema is not None and schema.is_mutable and isinstance(first, Node) and first.op == "get_attr":
            raise UnsupportedError(
                f"the model keeps state in {first.target}, so biases and rounding cannot be found from single samples",
                hint="leave correct_bias and adaround out",
            )


def _count(model: GraphModule, batches: Sequence[tuple[torch.Tensor, ...]]) -> int:
    """Return how many samples fit into memory: the live values of each are kept."""
    sizes = [
        value.numel() * value.element_size()
        for node in model.graph.nodes
        for value in tree_leaves(value_of(node))
        if node.op == "call_function" and isinstance(value, torch.Tensor)
    ]
    most = MEMORY // (_LIVE * max(sizes, default=1))
    return max(1, min(SAMPLES, len(batches), most))
