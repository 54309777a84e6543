"""SQNR of each layer of the quantized network against the float network, on samples.

Both run node by node. A layer's value is the one its readers get: after the quantize and dequantize behind it. Nodes of the
quantized module have the names of the float module's.

Example:
    >>> layers, output = measure(model, quantized, samples)
    >>> min(layers, key=lambda layer: layer.sqnr).origin
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node

from openneutron.executorch.capture.export import Inputs, evaluation, export
from openneutron.executorch.fx import is_dequantize, is_quantize, origin
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.pt2e import prepare

FULL = 120.0  # dB for equal values: more than any INT8 result reaches


@dataclass(frozen=True)
class LayerSqnr:
    """One node of the quantized module: its name in the captured graph, its number of elements, its SQNR in dB."""

    origin: str
    elements: int
    sqnr: float


def measure(
    model: torch.nn.Module | torch.export.ExportedProgram, quantized: GraphModule, samples: Sequence[Inputs]
) -> tuple[list[LayerSqnr], float]:
    """Return the SQNR of every node of the quantized module that the float one has too, and that of the output."""
    floating = _float_module(model, samples)
    powers: dict[str, tuple[float, float]] = {}
    sizes: dict[str, int] = {}
    with torch.no_grad():
        for sample in samples:
            wanted, found = _values(floating, sample), _values(quantized, sample)
            for name, value in found.items():
                reference = wanted.get(name)
                if reference is not None and reference.shape == value.shape:
                    signal, noise = powers.get(name, (0.0, 0.0))
                    # Sums use double precision: single precision drops small differences of large tensors.
                    signal += float(reference.square().sum(dtype=torch.double))
                    powers[name] = signal, noise + float((reference - value).square().sum(dtype=torch.double))
                    sizes[name] = value.numel()
    origins = {node.name: origin(node) or node.name for node in quantized.graph.nodes}
    layers = [
        LayerSqnr(origins[name], sizes[name], _decibels(*power)) for name, power in powers.items() if name in origins
    ]
    return layers, _decibels(*powers[_OUTPUT]) if _OUTPUT in powers else FULL


_OUTPUT = "<output>"  # no node has this name


def _float_module(model: torch.nn.Module | torch.export.ExportedProgram, samples: Sequence[Inputs]) -> GraphModule:
    """Return the float network as the quantizer saw it, with the node names of the quantized module.

    It contains observers, which the recorder skips.
    """
    if isinstance(model, torch.export.ExportedProgram):
        return prepare(model, NeutronQuantizer(), samples=samples)
    with evaluation(model):
        return prepare(export(model, samples[0]), NeutronQuantizer(), samples=samples)


class _Recorder(Interpreter):
    """Runs a module and records every call's result, or its first tensor, and the output."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.values: dict[str, torch.Tensor] = {}

    def run_node(self, n: Node) -> Any:
        if n.op == "call_module" and hasattr(self.fetch_attr(str(n.target)), "calculate_qparams"):
            return self.env[n.args[0]]  # skip an observer; its histograms take longer than the network
        value = super().run_node(n)
        if n.op in ("call_function", "output"):
            first = value[0] if isinstance(value, (tuple, list)) and value else value
            if isinstance(first, torch.Tensor) and first.is_floating_point():
                self.values[_OUTPUT if n.op == "output" else _maker(n)] = first
        return value


def _maker(node: Node) -> str:
    """Return the node's name; for a dequantize, the name of the node whose value it restores."""
    if is_dequantize(node) and isinstance(node.args[0], Node) and is_quantize(node.args[0]):
        origin = node.args[0].args[0]
        return origin.name if isinstance(origin, Node) else node.name
    return node.name


def _values(module: GraphModule, sample: Inputs) -> dict[str, torch.Tensor]:
    recorder = _Recorder(module)
    recorder.run(*sample)
    return recorder.values


def _decibels(signal: float, noise: float) -> float:
    if noise == 0:
        return FULL
    return max(min(10 * math.log10(signal / noise), FULL), -FULL) if signal else -FULL
