"""How close each layer of the quantized network is to the float one, on samples.

Both run node by node. A layer's value is what its readers see: after the quantize and dequantize behind it. Two names tie the
levels together: the quantized module calls its nodes as the float module does that it was made from, and a node of the report
knows what it was called when the model was first captured, as nodes of the quantized module do.

Example:
    >>> measured = with_sqnr(program.report, model, program.quantized, samples)
    >>> min(measured.kernels, key=lambda kernel: kernel.sqnr).name
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node

from openneutron.errors import OpenNeutronError
from openneutron.executorch.capture.export import Inputs, evaluation, export, prepare
from openneutron.executorch.fx import is_dequantize, is_quantize, origin
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.report.model import Kernel, Report, WhatIf

Progress = Callable[[str], None]

FULL = 120.0  # dB that stand for "equal": more than any INT8 result reaches


def with_sqnr(
    report: Report,
    model: torch.nn.Module | torch.export.ExportedProgram,
    quantized: GraphModule,
    samples: Sequence[Inputs],
    *,
    progress: Progress | None = None,
) -> Report:
    """The report with the SQNR of each kernel's output and of the program's."""
    if progress is not None:
        progress("comparing every layer with float")
    layers, output = measure(model, quantized, samples)
    members = _members(report)
    kernels = tuple(dataclasses.replace(k, sqnr=_of_kernel(members(k), layers, k)) for k in report.kernels)
    return dataclasses.replace(report, kernels=kernels, output_sqnr=output)


@dataclass(frozen=True)
class LayerSqnr:
    """One node of the quantized module: its name at first capture, the elements of its value, decibels."""

    origin: str
    elements: int
    sqnr: float


def measure(
    model: torch.nn.Module | torch.export.ExportedProgram, quantized: GraphModule, samples: Sequence[Inputs]
) -> tuple[list[LayerSqnr], float]:
    """The SQNR of every node of the quantized module that the float one has too, and that of the output."""
    floating = _float_module(model, samples[0])
    powers: dict[str, tuple[float, float]] = {}
    sizes: dict[str, int] = {}
    with torch.no_grad():
        for sample in samples:
            wanted, found = _values(floating, sample), _values(quantized, sample)
            for name, value in found.items():
                reference = wanted.get(name)
                if reference is not None and reference.shape == value.shape:
                    signal, noise = powers.get(name, (0.0, 0.0))
                    # Sums in double: single precision loses what small differences of large tensors add.
                    signal += float(reference.square().sum(dtype=torch.double))
                    powers[name] = signal, noise + float((reference - value).square().sum(dtype=torch.double))
                    sizes[name] = value.numel()
    origins = {node.name: origin(node) or node.name for node in quantized.graph.nodes}
    layers = [
        LayerSqnr(origins[name], sizes[name], _decibels(*power)) for name, power in powers.items() if name in origins
    ]
    return layers, _decibels(*powers[_OUTPUT]) if _OUTPUT in powers else FULL


def per_channel_what_if(
    loaded: Any, samples: Sequence[Inputs], options: dict[str, Any], *, progress: Progress | None = None
) -> tuple[WhatIf, ...]:
    """The program compiled again with a weight scale for each output channel, and the SQNR that it then has."""
    from openneutron.executorch.pipeline import compile_module

    if progress is not None:
        progress("trying: weights quantized per channel")
    try:
        program = compile_module(
            loaded.model, loaded.example_inputs, calibration=loaded.calibration, per_channel=True, **options
        )
    except OpenNeutronError:
        return ()
    if program.quantized is None:
        return ()
    totals = program.report.totals
    _, output = measure(loaded.model, program.quantized, samples)
    return (
        WhatIf(
            "Quantize weights per output channel", "--per-channel", program.report.target, totals.cycles,
            totals.milliseconds, totals.peak_bytes, output_sqnr=output,
        ),
    )  # fmt: skip


_OUTPUT = "<output>"  # no node is called that


def _float_module(model: torch.nn.Module | torch.export.ExportedProgram, sample: Inputs) -> GraphModule:
    """The float network as the quantizer saw it, its nodes named as in the quantized module.

    It holds observers, which are passed by.
    """
    if isinstance(model, torch.export.ExportedProgram):
        return prepare(model, NeutronQuantizer())
    with evaluation(model):
        return prepare(export(model, sample), NeutronQuantizer())


class _Recorder(Interpreter):
    """Runs a module and keeps the first tensor of every call's value, and the output's."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.values: dict[str, torch.Tensor] = {}

    def run_node(self, n: Node) -> Any:
        if n.op == "call_module" and hasattr(self.fetch_attr(str(n.target)), "calculate_qparams"):
            return self.env[n.args[0]]  # an observer; its histograms take longer than the network
        value = super().run_node(n)
        if n.op in ("call_function", "output"):
            first = value[0] if isinstance(value, (tuple, list)) and value else value
            if isinstance(first, torch.Tensor) and first.is_floating_point():
                self.values[_OUTPUT if n.op == "output" else _maker(n)] = first
        return value


def _maker(node: Node) -> str:
    """The node itself; for a dequantize, the node whose value it gives back."""
    if is_dequantize(node) and isinstance(node.args[0], Node) and is_quantize(node.args[0]):
        origin = node.args[0].args[0]
        return origin.name if isinstance(origin, Node) else node.name
    return node.name


def _values(module: GraphModule, sample: Inputs) -> dict[str, torch.Tensor]:
    recorder = _Recorder(module)
    recorder.run(*sample)
    return recorder.values


def _members(report: Report) -> Callable[[Kernel], list[str]]:
    """Kernel → names in the quantized module of the nodes that it computes, in the order of the program."""
    operators = {op.index: op for op in report.operators}

    def members(kernel: Kernel) -> list[str]:
        handles = {handle for op in kernel.operators if op in operators for handle in operators[op].debug_handles}
        return [node.origin for node in report.nodes if node.delegated and node.debug_handle in handles and node.origin]

    return members


def _of_kernel(names: Sequence[str], layers: Sequence[LayerSqnr], kernel: Kernel) -> float | None:
    """The SQNR of the last node that the kernel computes; None where no node, or several, may be that one."""
    size = math.prod(kernel.output_shape)
    for name in reversed(names):
        known = {layer.sqnr for layer in layers if layer.origin == name and layer.elements == size}
        if known:
            return known.pop() if len(known) == 1 else None
    return None


def _decibels(signal: float, noise: float) -> float:
    if noise == 0:
        return FULL
    return max(min(10 * math.log10(signal / noise), FULL), -FULL) if signal else -FULL
