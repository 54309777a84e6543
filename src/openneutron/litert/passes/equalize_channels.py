"""Channels of a float graph in units of their own, so that those that share an INT8 scale use all of it.

Before:  conv -> channels up to 0.1 and 100, one scale for both -> conv
After:   conv with divided weights -> channels up to 3 and 3 -> conv with multiplied weights
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from openneutron.litert.graph import Graph, Operator
from openneutron.litert.passes.channel_groups import WEIGHTED, ChannelGroups, channel_groups, flattened_channels

Array = npt.NDArray[Any]
_MOST: Final = 256.0  # times the unit of other channels: beyond, a channel is as good as empty


@dataclass(frozen=True)
class Balance:
    """How much a unit follows the range of its channel and how much the weights that read it, as exponents.

    Half and half leaves both as even as the other; with weights only of channels (depthwise) the range alone counts.
    """

    range: float = 0.5
    weights: float = 0.5


def equalize_channels(graph: Graph, peaks: Mapping[str, Array], balance: Balance) -> dict[str, Array]:
    """Change weights in place; returns by tensor name what each channel was divided by.

    `peaks` has the largest absolute value of each channel, by tensor name.

    Example:
        >>> units = equalize_channels(model.main, {"conv": np.array([0.1, 100.0])}, Balance())
    """
    groups = channel_groups(graph)
    units = _units(graph, groups, peaks, balance)
    if not units:
        return {}
    by_tensor = {at: _unit_of(groups, units, at) for at in range(len(graph.tensors)) if groups.channels(at)}
    for op in graph.operators:
        if op.code in WEIGHTED:
            _change_layer(graph, op, by_tensor)
        elif op.code in ("ADD", "SUB"):
            _change_constant(graph, op, by_tensor[op.outputs[0]])
    return {graph.tensors[at].name: unit for at, unit in by_tensor.items() if (unit != 1).any()}


def _units(graph: Graph, groups: ChannelGroups, peaks: Mapping[str, Array], balance: Balance) -> dict[int, float]:
    """Return the unit of each group: how large its channels are, against others of their tensors."""
    largest: dict[int, float] = {}
    weights: dict[int, float] = {}
    for at, tensor in enumerate(graph.tensors):
        peak = peaks.get(tensor.name)
        if peak is None or not groups.channels(at) or not peak.max():
            continue
        for group, share in zip(groups.of(at).tolist(), (peak / peak.max()).tolist(), strict=True):
            if group >= 0:
                largest[group] = max(largest.get(group, 0.0), share)
    for op in graph.operators:
        if op.code in WEIGHTED and op.code != "DEPTHWISE_CONV_2D":
            at = op.inputs[WEIGHTED[op.code][0]]
            for group, share in zip(groups.of(at).tolist(), _shares(graph, op).tolist(), strict=True):
                if group >= 0:
                    weights[group] = max(weights.get(group, 0.0), share)
    found = {}
    for group, share in largest.items():
        if share > 0:
            reads = weights.get(group, 0.0)
            unit = share**balance.range / (reads**balance.weights if reads > 0 else 1.0)
            found[group] = float(np.clip(unit, 1 / _MOST, _MOST))
    return found


def _shares(graph: Graph, op: Operator) -> Array:
    """Return how large the weights of each input channel are against the largest of their output channel."""
    at_input, at_weights, _ = WEIGHTED[op.code]
    weights, given = graph.tensors[op.inputs[at_weights]], graph.tensors[op.inputs[at_input]]
    assert weights.data is not None
    rows = np.abs(weights.data.astype(np.float64)).reshape(weights.shape[0], -1, given.shape[-1]).max(1)
    shares: Array = (rows / np.maximum(rows.max(1, keepdims=True), 1e-30)).max(0)
    return shares


def _unit_of(groups: ChannelGroups, units: Mapping[int, float], tensor: int) -> Array:
    return np.array([units.get(group, 1.0) for group in groups.of(tensor).tolist()])


def _change_layer(graph: Graph, op: Operator, units: Mapping[int, Array]) -> None:
    at_input, at_weights, at_bias = WEIGHTED[op.code]
    given, result = units.get(op.inputs[at_input]), units[op.outputs[0]]
    if given is None:
        return
    weights = graph.tensors[op.inputs[at_weights]]
    assert weights.data is not None
    values = weights.data.astype(np.float64)
    if op.code == "DEPTHWISE_CONV_2D":
        values = values * np.repeat(given, weights.shape[-1] // len(given)) / result
    else:
        read = given[flattened_channels(weights.shape[-1], len(given))]
        values = values * read / result.reshape(-1, *[1] * (values.ndim - 1))
    _set(graph, op.inputs[at_weights], values)
    if len(op.inputs) > at_bias and op.inputs[at_bias] >= 0:
        _change_bias(graph, op.inputs[at_bias], result)


def _change_constant(graph: Graph, op: Operator, unit: Array) -> None:
    """Divide the constant that is added."""
    for at in op.inputs:
        if graph.tensors[at].is_constant and (unit != 1).any():
            _change_bias(graph, at, unit)


def _change_bias(graph: Graph, at: int, unit: Array) -> None:
    data = graph.tensors[at].data
    assert data is not None
    _set(graph, at, data.astype(np.float64) / unit)


def _set(graph: Graph, at: int, values: Array) -> None:
    data = np.ascontiguousarray(values, np.float32)
    data.flags.writeable = False
    graph.tensors[at].data = data
