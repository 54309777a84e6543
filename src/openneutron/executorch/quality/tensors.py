"""The quantized tensors of a network: which layers compute and read each, and the noise that each alone adds to the outputs.

Operators that only move data share the parameters of their input; such values are one tensor here. Noise is measured with all
other activations in float, so that the noise of several tensors is about the sum of theirs.

Example:
    >>> tensors = find_tensors(module)
    >>> noise = measure_noise(module, tensors, samples, wanted, labels)
    >>> tensors[int(noise.alone.max(axis=1).argmax())].makers
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.node import map_arg
from torchao.quantization.pt2e.quantizer import SharedQuantizationSpec
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

from openneutron.executorch.capture.export import Inputs, one_thread
from openneutron.executorch.fx import is_changed, is_dequantize, is_quantize
from openneutron.executorch.quantize.accuracy import copy_tensors
from openneutron.executorch.quantize.states import restore, states_of
from openneutron.executorch.upstream.names import tree_leaves

Array = npt.NDArray[np.float64]

MOST_RUNS: Final = 800  # of the network behind one tensor; a network of 100 tensors is measured on 8 samples
MOST_SAMPLES: Final = 8  # enough to put tensors in order


@dataclass(eq=False)
class QuantizedTensor:
    """A value and its copies with the same parameters: the quantize nodes, and the layers that compute and read it.

    Layers are known by the node that reads their input. `fixed` tensors cannot have 16 bits: states, for instance.
    """

    quantizes: set[Node] = field(default_factory=set)
    makers: set[Node] = field(default_factory=set)
    readers: set[Node] = field(default_factory=set)
    fixed: bool = False


@dataclass(frozen=True)
class Noise:
    """Power of the noise in each part of the outputs against that of the signal.

    `alone` has a row for each tensor; `floor` is what remains with all activations in float: that of the weights.
    """

    alone: Array
    floor: Array


def find_tensors(module: GraphModule) -> list[QuantizedTensor]:
    """Return the INT8 activations of a converted module, in the order of the graph."""
    groups: dict[Node, QuantizedTensor] = {}
    for node in module.graph.nodes:
        if not _is_narrow_activation(node, groups):
            continue
        origin: Node = node.args[0]
        sources = [one.args[0] for one in origin.all_input_nodes if is_dequantize(one)] if _moves_data(origin) else []
        same = [one for one in sources if one in groups and one.args[1:] == node.args[1:]]
        group = groups[same[0]] if same else QuantizedTensor()
        for other in same[1:]:
            group = _join(groups, group, groups[other])
        groups[node] = group
        group.quantizes.add(node)
        if len(sources) > 1 or (not same and origin.op == "call_function" and not is_dequantize(origin)):
            group.makers.add(_head(origin))  # a join gets 16 bits only by name: its parts may have 8 or 16
        group.fixed |= origin.op == "get_attr"
    for group in dict.fromkeys(groups.values()):
        group.readers = set(_readers(group))
    return list(dict.fromkeys(groups.values()))


def _is_narrow_activation(node: Node, groups: Mapping[Node, QuantizedTensor]) -> bool:
    """Return whether a node quantizes an activation to INT8, or gives one another scale."""
    if not is_quantize(node) or node.args[-1] is not torch.int8:
        return False
    origin = node.args[0]
    if not isinstance(origin, Node):
        return False
    if is_dequantize(origin):
        return origin.args[0] in groups
    return origin.op in ("call_function", "placeholder") or (origin.op == "get_attr" and is_changed(origin))


def _moves_data(node: Node) -> bool:
    """Return whether a result has its input's parameters by annotation."""
    found = node.meta.get(Q_ANNOTATION_KEY)
    return found is not None and isinstance(found.output_qspec, SharedQuantizationSpec)


def _join(groups: dict[Node, QuantizedTensor], one: QuantizedTensor, other: QuantizedTensor) -> QuantizedTensor:
    if one is not other:
        one.quantizes |= other.quantizes
        one.makers |= other.makers
        one.fixed |= other.fixed
        for node in other.quantizes:
            groups[node] = one
    return one


def _head(node: Node) -> Node:
    """Return the node that reads the layer's input: a fused activation is behind it."""
    while not any(is_dequantize(one) for one in node.all_input_nodes):
        inputs = [one for one in node.all_input_nodes if one.op == "call_function"]
        if len(inputs) != 1:
            break
        node = inputs[0]
    return node


def _readers(group: QuantizedTensor) -> Iterator[Node]:
    for quantize in group.quantizes:
        for dequantize in quantize.users:
            for reader in dequantize.users:
                moved = _moves_data(reader) and any(one in group.quantizes for one in reader.users)
                if reader.op == "call_function" and not moved and not is_quantize(reader):
                    yield reader


class _FloatRun(Interpreter):
    """Runs a module with its activations in float and keeps every value; changed buffers are copied, not written."""

    def __init__(self, module: GraphModule, off: set[Node], states: set[Node]) -> None:
        super().__init__(module, garbage_collect_values=False)
        self._off, self._states = off, states

    def run_node(self, n: Node) -> Any:
        if n in self._off or (is_dequantize(n) and n.args[0] in self._off):
            return self.env[n.args[0]]
        value = super().run_node(n)
        return value.clone() if n in self._states else value


def measure_noise(
    module: GraphModule,
    tensors: Sequence[QuantizedTensor],
    samples: Sequence[Inputs],
    wanted: Sequence[Any],
    labels: Sequence[torch.Tensor | None] = (),
    *,
    alone: bool = True,
) -> Noise:
    """Return the noise that each tensor alone adds to each part of the outputs, on some of the samples.

    Without `alone` only the noise of the weights is measured, which is one run for a sample.

    `labels` number the pieces that outputs are joined from; each is a part. A state is carried from sample to sample.
    """
    off = set().union(*(one.quantizes for one in tensors))
    states = {node for node in module.graph.find_nodes(op="get_attr") if is_changed(node)}
    count = max(1, min(len(samples), MOST_SAMPLES, MOST_RUNS // max(1, len(tensors))))
    # A state has to be carried through all samples; without one the first few serve.
    step = max(1, len(samples) // count) if states else 1
    kept = states_of(module)
    signal: Any = 0.0
    floor: Any = 0.0
    each: list[Any] = [0.0] * len(tensors)
    with torch.no_grad(), one_thread():
        for number, (sample, reference) in enumerate(zip(samples[: count * step], wanted[: count * step], strict=True)):
            run = _FloatRun(module, off, states)
            base = run.run(*copy_tensors(sample))
            measured = (number + 1) % step == 0
            if not measured:
                _carry_on(run, states)
                continue
            signal = signal + _powers(reference, labels)
            floor = floor + _powers(_differences(base, reference), labels)
            for at, tensor in enumerate(tensors if alone else ()):
                found = _run_again(run, tensor.quantizes, off, states)
                each[at] = each[at] + _powers(_differences(found, base), labels)
            _carry_on(run, states)
    restore(module, kept)
    signal = np.maximum(signal, np.finfo(np.float64).tiny)
    found_alone = np.stack(each) / signal if alone and each else np.zeros((0, signal.size))
    return Noise(found_alone, floor / signal)


def _carry_on(run: _FloatRun, states: set[Node]) -> None:
    """Store the states that a run has left in its copies, for the next sample."""
    for node in states:
        run.fetch_attr(str(node.target)).copy_(run.env[node])


def _run_again(run: _FloatRun, quantizes: set[Node], off: set[Node], states: set[Node]) -> Any:
    """Run what depends on some quantize nodes again with these on; returns the output."""
    changed: dict[Node, Any] = {}
    for node in run.module.graph.nodes:
        if node in states:
            changed[node] = run.fetch_attr(str(node.target)).clone()
            continue
        if node not in quantizes and not any(one in changed for one in node.all_input_nodes):
            continue
        skipped = node if node in off else node.args[0] if is_dequantize(node) else None
        if skipped in off and skipped not in quantizes:
            changed[node] = changed[node.args[0]]
            continue
        values = map_arg((node.args, node.kwargs), lambda one: changed[one] if one in changed else run.env[one])
        if node.op == "output":
            return values[0][0]
        changed[node] = getattr(run, node.op)(node.target, *values)
    return next(run.env[node] for node in run.module.graph.nodes if node.op == "output")


def _floats(result: Any) -> list[torch.Tensor]:
    return [one.double() for one in tree_leaves(result) if isinstance(one, torch.Tensor) and one.is_floating_point()]


def _differences(found: Any, wanted: Any) -> list[torch.Tensor]:
    right = _floats(wanted)
    ours = _floats(found)
    ours = ours[len(ours) - len(right) :]  # programs return changed inputs first
    return [(a.reshape(b.shape) - b).nan_to_num(0.0, 0.0, 0.0) for a, b in zip(ours, right, strict=True)]


def _powers(result: Any, labels: Sequence[torch.Tensor | None]) -> Array:
    """Return the power of each part: of each output, or of each piece that it is joined from."""
    found: list[float] = []
    values = _floats(result)
    known = labels if len(labels) == len(values) else [None] * len(values)
    for value, pieces in zip(values, known, strict=True):
        squares = torch.where(value.isfinite(), value, 0.0).square()
        if pieces is None or pieces.shape != value.shape:
            found.append(float(squares.sum()))
        else:
            found += torch.zeros(int(pieces.max()) + 1, dtype=torch.float64).index_add_(
                0, pieces.reshape(-1).long(), squares.reshape(-1)
            ).tolist()  # fmt: skip
    return np.array(found)
