"""Accuracy warning: says in one sentence where a quantized network loses accuracy, with the commands that help."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx import GraphModule

from openneutron.errors import OpenNeutronError
from openneutron.executorch.quantize.accuracy import GOOD, SAMPLES
from openneutron.executorch.quantize.layer_sqnr import LayerSqnr, measure
from openneutron.report.model import Report


def loss(
    report: Report,
    model: torch.nn.Module | torch.export.ExportedProgram,
    quantized: GraphModule,
    samples: Sequence[tuple[torch.Tensor, ...]],
) -> str:
    """Return the warning for a program below `GOOD` dB: its SQNR, the first layer below, and what to try.

    Example:
        >>> loss(report, model, quantized, samples)
        'the output is 12.3 dB SQNR from float, below 20 dB; fc1 (net.py:12) is the first layer below; …'
    """
    assert report.output_sqnr is not None
    try:
        layers, _ = measure(model, quantized, samples[:SAMPLES])
    except OpenNeutronError:
        layers = []
    first = next((layer for layer in layers if layer.sqnr < GOOD and layer.elements > 1), None)
    where = (
        f"{_name_layer(report, first)} is the first layer below ({first.sqnr:.1f} dB); " if first is not None else ""
    )
    return (
        f"the output is {report.output_sqnr:.1f} dB SQNR from float, below {GOOD:.0f} dB; {where}"
        f"`openneutron bisect` measures what helps, --observer minmax and --correct-bias among it"
    )


def _name_layer(report: Report, layer: LayerSqnr) -> str:
    node = next((one for one in report.nodes if one.origin == layer.origin), None)
    return f"{layer.origin} ({node.source})" if node is not None and node.source else layer.origin
