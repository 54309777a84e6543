"""Bisect: which layer's quantization costs how much, and whether a change of the quantizer wins it back.

The model is quantized once with its quantize and dequantize nodes in place. To ask about a layer, the network runs with
that layer's own left out: its weights and its result stay in float, everything else is quantized. What the output gains
by that is what the layer costs.

Example:
    >>> found = bisect(model, (image,), calibration=batches, samples=images)
    >>> found.layers[0].source, found.layers[0].gain
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node

from openneutron.executorch.capture.export import Inputs, evaluation, export
from openneutron.executorch.fx import is_dequantize, is_quantize, module_path, operator_name, source_line
from openneutron.executorch.quality.goals import Measure, measure_of
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.accuracy import copy_tensors
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantize.measure.original import run_original
from openneutron.executorch.quantize.post_training import quantize_exported
from openneutron.executorch.quantize.pt2e import calibrate, prepare
from openneutron.executorch.quantize.states import restore, states_of
from openneutron.executorch.torch_lock import torch_lock
from openneutron.options import SCHEMA, check_options

Progress = Callable[[str], None]

# Changes of the quantizer worth measuring; none of them costs cycles.
_CHANGES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("activation ranges from minimum and maximum", {"observer": "minmax"}),
    ("activation ranges from moving averages", {"observer": "moving_average"}),
    ("activation ranges fitted to their readers", {"fit_ranges": True}),
    ("layers equalized", {"equalize": True}),
    ("biases corrected", {"correct_bias": True}),
    ("weights rounded for their layer", {"adaround": True}),
)
# A smaller gain is within what another choice of samples changes.
MIN_GAIN_DB = 0.1
_MOST_WIDE = 4  # layers proposed for 16 bits one by one; where more are to blame, all of them are the answer


@dataclass(frozen=True)
class LayerCost:
    """What the whole network reaches with one layer left in float, and the gain in decibels.

    `modules` are the paths of the modules it is made of, as `NeutronQuantizer(exclude=…)` takes them.
    """

    name: str
    operator: str
    source: str
    modules: tuple[str, ...]
    measure: Measure
    gain: float


@dataclass(frozen=True)
class Price:
    """What a compiled model takes: cycles, and bytes of memory and of flash."""

    cycles: int
    peak_bytes: int
    flash_bytes: int


@dataclass(frozen=True)
class Fix:
    """A change of the quantizer and what it reaches.

    `how` are the arguments of `openneutron.compile`, `flags` those of the command.
    Changes to 16-bit activations are compiled too: `price` is what the model then takes.
    """

    change: str
    how: str
    measure: Measure
    flags: str = ""
    price: Price | None = None


@dataclass(frozen=True)
class Bisection:
    """Float, quantized, each layer by what it costs (dearest first), and fixes by what they reach (best first)."""

    floating: Measure
    quantized: Measure
    layers: tuple[LayerCost, ...]
    fixes: tuple[Fix, ...]
    price: Price | None = None  # of the model as quantized, to compare the fixes with


@torch_lock()
def bisect(
    model: torch.nn.Module,
    example_inputs: Inputs,
    *,
    calibration: Sequence[Inputs],
    samples: Sequence[Inputs],
    classes: Sequence[int] | None = None,
    target: str = "",
    progress: Progress | None = None,
) -> Bisection:
    """Measure on `samples` what quantizing each layer costs; with `classes`, one per sample, accuracy too.

    With a `target`, 16-bit activations are tried for the layers that need them and compiled for it, to know their price.
    """
    stage = progress or (lambda text: None)
    with evaluation(model), torch.no_grad():
        stage("running in float")
        wanted = run_original(model, samples)
        exported = export(model, example_inputs)

        def measure_module(module: GraphModule, off: set[Node] | None = None) -> Measure:
            return measure_of(run_partly(module, samples, off or set()), wanted, classes)

        def quantize_with(**how: Any) -> GraphModule:
            chosen = Choices.of(check_options(how))
            return quantize_exported(exported, calibration, chosen, NeutronQuantizer.of(chosen)).module

        stage("quantizing")
        prepared = prepare(exported, NeutronQuantizer.of(Choices()), samples=calibration)
        states = states_of(prepared)
        calibrate(prepared, calibration)
        module = convert_unfolded(prepared)
        restore(module, states)
        base = measure_module(module)
        layers: list[LayerCost] = []
        groups = layer_groups(module)
        for number, group in enumerate(groups, 1):
            node = group.head
            stage(f"layer {number} of {len(groups)}: {node.name}")
            found = measure_module(module, group.quantizes)
            paths = tuple(dict.fromkeys(filter(None, map(module_path, (node, group.result)))))
            layers.append(
                LayerCost(node.name, operator_name(node), source_line(node), paths, found, found.sqnr - base.sqnr)
            )
        layers.sort(key=lambda layer: -layer.gain)
        changes = [*_CHANGES]
        if layers and layers[0].modules:
            changes.append((f"{layers[0].name} left in float, on the CPU", {"exclude": list(layers[0].modules)}))
        changes += _wider(layers)
        fixes: list[Fix] = []
        for change, how in changes:
            stage(f"trying: {change}")
            text = ", ".join(f"{key}={value!r}" for key, value in how.items())
            fixes.append(Fix(change, text, measure_module(quantize_with(**how)), _flags(how)))
    price: Price | None = None
    if target:
        stage(f"compiling for {target}")
        price = _price(model, example_inputs, calibration, target)
        for at, (change, how) in enumerate(changes):
            if "activations" in how or "precision" in how:
                stage(f"compiling: {change}")
                fixes[at] = replace(fixes[at], price=_price(model, example_inputs, calibration, target, **how))
    fixes.sort(key=lambda fix: -fix.measure.sqnr)
    return Bisection(measure_of(wanted, wanted, classes), base, tuple(layers), tuple(fixes), price)


def _wider(layers: Sequence[LayerCost]) -> list[tuple[str, dict[str, Any]]]:
    """16-bit activations for the dearest layer, for all that are worth it, and everywhere."""
    blamed = [layer for layer in layers if layer.gain >= MIN_GAIN_DB and layer.modules]
    changes: list[tuple[str, dict[str, Any]]] = []
    for count in sorted({1, len(blamed)} & set(range(1, _MOST_WIDE + 1))):
        paths = dict.fromkeys(path for layer in blamed[:count] for path in layer.modules)
        names = ", ".join(layer.name for layer in blamed[:count])
        changes.append((f"16-bit activations in {names}", {"precision": dict.fromkeys(paths, "int16")}))
    return [*changes, ("16-bit activations everywhere", {"activations": "int16"})]


def _price(
    model: torch.nn.Module, example_inputs: Inputs, calibration: Sequence[Inputs], target: str, **how: Any
) -> Price:
    from openneutron.executorch.pipeline import build

    totals = build(model, example_inputs, calibration=calibration, target=target, **how).report.totals
    return Price(totals.cycles, totals.peak_bytes, totals.weight_bytes + totals.microcode_bytes)


def _flags(how: dict[str, Any]) -> str:
    """The change as options of the command line."""
    words: list[str] = []
    for name, value in how.items():
        flag = SCHEMA[name].spelling(value)
        pairs = [f"{key}={one}" for key, one in value.items()] if isinstance(value, dict) else value
        given = pairs if isinstance(pairs, list) else [pairs]
        words += [flag] if isinstance(value, bool) else [f"{flag} {shlex.quote(str(one))}" for one in given]
    return " ".join(words)


def convert_unfolded(prepared: GraphModule) -> GraphModule:
    """Convert and keep the weights' quantize nodes, so that they can be left out one by one."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

    return convert_pt2e(prepared, fold_quantize=False)


@dataclass
class Group:
    """A layer: from the node that reads its constants, or its only one, to the one whose result is quantized."""

    head: Node
    result: Node
    quantizes: set[Node]


def layer_groups(module: GraphModule) -> list[Group]:
    """The layers with their quantize nodes: those of their constants and that of their result."""
    found: dict[Node, Group] = {}
    for node in module.graph.nodes:
        if not is_quantize(node):
            continue
        origin = node.args[0]
        if isinstance(origin, Node) and origin.op == "call_function" and not is_dequantize(origin):
            found.setdefault(origin, Group(origin, origin, set())).quantizes.add(node)
        elif isinstance(origin, Node) and origin.op == "get_attr":
            for reader in (user for inner in node.users for user in inner.users):
                if not is_quantize(reader):
                    result = _result(reader)
                    group = found.setdefault(result, Group(reader, result, set()))
                    group.head = reader
                    group.quantizes.add(node)
    return list(found.values())


def _result(node: Node) -> Node:
    """The node whose result is quantized for a layer that begins here: an activation fused behind it is part of it."""
    while len(node.users) == 1:
        (reader,) = node.users
        if is_quantize(reader) or reader.op != "call_function":
            break
        node = reader
    return node


class Partly(Interpreter):
    """Runs a quantized module with some quantize nodes, and the dequantize nodes behind them, left out."""

    def __init__(self, module: GraphModule, off: set[Node]) -> None:
        super().__init__(module)
        self._off = off

    def run_node(self, n: Node) -> Any:
        left_out = n in self._off or (is_dequantize(n) and n.args[0] in self._off)
        return self.env[n.args[0]] if left_out else super().run_node(n)


def run_partly(module: GraphModule, samples: Sequence[Inputs], off: set[Node]) -> list[Any]:
    """Run a module on samples in a row with some quantize nodes left out; returns the results and restores its state."""
    run = Partly(module, off).run if off else module
    states = states_of(module)
    with torch.no_grad():
        found = [copy_tensors(run(*copy_tensors(sample))) for sample in samples]
    restore(module, states)
    return found
