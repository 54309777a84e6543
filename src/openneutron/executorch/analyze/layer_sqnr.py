"""The SQNR of each layer in a report, on the samples on which the compile measured the program.

A node of the report has the name that it had when the model was first captured, as nodes of the quantized module do.

Example:
    >>> measured = with_sqnr(program.report, model, program.quantized, samples)
    >>> min(measured.kernels, key=lambda kernel: kernel.sqnr).name
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import torch
from torch.fx import GraphModule

from openneutron.executorch.capture.export import Inputs
from openneutron.executorch.quantize.accuracy import SAMPLES
from openneutron.executorch.quantize.layer_sqnr import LayerSqnr, measure
from openneutron.executorch.torch_lock import torch_lock
from openneutron.report.model import Kernel, Report

Progress = Callable[[str], None]


def with_sqnr(
    report: Report,
    model: torch.nn.Module | torch.export.ExportedProgram,
    quantized: GraphModule,
    samples: Sequence[Inputs],
    *,
    progress: Progress | None = None,
) -> Report:
    """Return the report with the SQNR of each kernel's output added.

    The SQNR of the whole program is not changed: the compile has measured it.
    """
    if progress is not None:
        progress("comparing every layer with float")
    with torch_lock():
        layers, _ = measure(model, quantized, samples[:SAMPLES])
    members = _members(report)
    kernels = tuple(dataclasses.replace(k, sqnr=_of_kernel(members(k), layers, k)) for k in report.kernels)
    return dataclasses.replace(report, kernels=kernels)


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
