"""The noise that each quantized tensor of a LiteRT model alone adds to each output.

Operators that only move values share the parameters of their input; such tensors are one here. Noise is measured with all other
activations in float, so that the noise of several tensors is about the sum of theirs.

Example:
    >>> tensors = quantized_tensors(graph)
    >>> noise = measure_noise(model, tensors, samples)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from openneutron.litert.graph import DType, Graph, Model
from openneutron.litert.passes.channel_groups import WEIGHTED
from openneutron.litert.passes.float_twin import float_twin

Array = npt.NDArray[Any]
Run = Callable[[Model], Callable[[Sequence[Array]], list[Array]]]

MOST_SAMPLES: Final = 8  # on which the noise of single tensors is measured: it is only compared with that of others
_MOST_RUNS: Final = 1600  # of the network, of these; one of 200 tensors is measured on 8 samples
_CONVERTING: Final = frozenset({"QUANTIZE", "DEQUANTIZE"})
# Each value of the output is one of the input, or LiteRT wants one scale for both.
_MOVING: Final = frozenset(
    {
        "RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "CONCATENATION", "PACK", "UNPACK", "SPLIT", "SPLIT_V", "SLICE",
        "STRIDED_SLICE", "GATHER", "GATHER_ND", "PAD", "PADV2", "MIRROR_PAD", "TILE", "BROADCAST_TO", "REVERSE_V2",
        "MAX_POOL_2D", "AVERAGE_POOL_2D", "MINIMUM", "MAXIMUM", "REDUCE_MAX", "REDUCE_MIN", "RESIZE_BILINEAR",
        "RESIZE_NEAREST_NEIGHBOR", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "SELECT_V2",
    }
)  # fmt: skip


@dataclass
class QuantizedTensor:
    """Tensors with the same values and parameters, and the operators that compute and read them, by their outputs' names."""

    indices: list[int] = field(default_factory=list)
    makers: set[str] = field(default_factory=set)
    readers: set[str] = field(default_factory=set)
    elements: int = 0


@dataclass(frozen=True)
class Noise:
    """The power of the noise in each output against its signal: of each tensor alone, and of the weights."""

    alone: Array
    floor: Array


def count_samples(tensors: Sequence[QuantizedTensor]) -> int:
    """Return on how many samples the noise of each of these tensors is measured.

    Example:
        >>> count_samples(tensors[:400])
        4
    """
    return max(1, min(MOST_SAMPLES, _MOST_RUNS // max(1, len(tensors))))


def exact_constants(graph: Graph, floating: Graph) -> dict[int, Array]:
    """Return the float values of the INT8 constants of a graph but weights, by index: 16 bits of an operator are theirs too."""
    weights = {op.inputs[WEIGHTED[op.code][1]] for op in graph.operators if op.code in WEIGHTED}
    known = {tensor.name: tensor.data for tensor in floating.tensors if tensor.dtype is DType.FLOAT32}
    found = {}
    for at, tensor in enumerate(graph.tensors):
        if tensor.dtype is DType.INT8 and tensor.is_constant and tensor.quantization is not None and at not in weights:
            value = known.get(tensor.name)
            if value is not None and value.shape == tensor.shape:
                found[at] = value
    return found


def quantized_tensors(graph: Graph, constants: Collection[int] = ()) -> list[QuantizedTensor]:
    """Return the INT8 activations of a graph in its order, and those constants that the operators read.

    An operator that moves values is maker and reader: a tensor has 16 bits where all that compute, move and read it have.
    """
    producers, readers = graph.producers(), graph.consumers()
    groups: dict[int, QuantizedTensor] = {}
    for at, tensor in enumerate(graph.tensors):
        if tensor.dtype is not DType.INT8 or tensor.quantization is None or tensor.is_constant:
            continue
        if at not in producers and at not in graph.inputs:
            continue
        groups[at] = QuantizedTensor([at])
    for op in graph.operators:
        if op.code not in _MOVING:
            continue
        for result in op.outputs:
            for given in op.inputs:
                if result in groups and given in groups and _equal(graph, result, given):
                    _join(groups, groups[result], groups[given])
    found = list({id(one): one for one in groups.values()}.values())
    for group in found:
        group.elements = max(graph.tensors[at].elements for at in group.indices)
        for at in group.indices:
            group.makers |= _makers(graph, producers, at)
            group.readers |= _readers(graph, readers, at)
    return found + [QuantizedTensor([at], _readers(graph, readers, at)) for at in sorted(constants)]


def _makers(graph: Graph, producers: dict[int, int], at: int) -> set[str]:
    """Return the operator that computes a tensor, seen through changes of scale; none for an input of the model."""
    while at in producers:
        op = graph.operators[producers[at]]
        if op.code not in _CONVERTING:
            return {_name(graph, op.outputs[0])}
        at = op.inputs[0]
    return set()


def _readers(graph: Graph, readers: dict[int, list[int]], at: int) -> set[str]:
    found: set[str] = set()
    for one in readers.get(at, []):
        op = graph.operators[one]
        found |= _readers(graph, readers, op.outputs[0]) if op.code in _CONVERTING else {_name(graph, op.outputs[0])}
    return found


def _name(graph: Graph, at: int) -> str:
    return graph.tensors[at].name


def _equal(graph: Graph, one: int, other: int) -> bool:
    return graph.tensors[one].quantization == graph.tensors[other].quantization


def _join(groups: dict[int, QuantizedTensor], one: QuantizedTensor, other: QuantizedTensor) -> None:
    if one is not other:
        one.indices += other.indices
        for at in other.indices:
            groups[at] = one


def measure_noise(
    model: Model, tensors: Sequence[QuantizedTensor], samples: Sequence[Sequence[Array]], wanted: Sequence[Sequence[Array]],
    run: Run, measure: Callable[[Sequence[Array]], Array], constants: Mapping[int, Array] | None = None,
) -> Noise:  # fmt: skip
    """Measure with `run`, which makes a function of a float model; `measure` gives the power of each part of the outputs."""
    exact = run(float_twin(model, steps=(), exact=constants))
    count = count_samples(tensors)
    samples, wanted = samples[:count], wanted[:count]
    base = [exact(sample) for sample in samples]
    signal = sum((measure(right) for right in wanted), np.zeros(1))
    signal = np.maximum(signal, np.finfo(np.float64).tiny)

    def noise_of(found: Sequence[Sequence[Array]], right: Sequence[Sequence[Array]]) -> Array:
        total = sum((measure(differences(a, b)) for a, b in zip(found, right, strict=True)), np.zeros(1))
        return np.asarray(total / signal)

    alone = []
    for tensor in tensors:
        rounded = run(float_twin(model, steps=set(tensor.indices), exact=constants))
        alone.append(noise_of([rounded(sample) for sample in samples], base))
    return Noise(np.array(alone).reshape(len(tensors), signal.size), noise_of(base, wanted))


def differences(found: Sequence[Array], wanted: Sequence[Array]) -> list[Array]:
    """Return what outputs differ by; what is not finite counts as no difference."""
    return [
        np.nan_to_num(a.reshape(b.shape).astype(np.float64) - b, nan=0.0, posinf=0.0, neginf=0.0)
        for a, b in zip(found, wanted, strict=True)
    ]
