"""Verification of LiteRT models: one to be compiled, or a compiled one against its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from openneutron.analyze.layer import Layer, compare_layer
from openneutron.analyze.verify import Subject, Verification, border, open_verifier, stream_of, zero_point
from openneutron.compiler.front.unroll_control_flow import read_unrolled
from openneutron.convert import convert
from openneutron.errors import OptionError, UnsupportedError
from openneutron.litert.graph import Graph
from openneutron.litert.passes.control_flow import has_control_flow
from openneutron.litert.passes.fold_constants import fold_constants
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.microcode.container import container_of
from openneutron.microcode.graph_op import blocks_of, is_graph_op
from openneutron.options import Options
from openneutron.report.model import Report
from openneutron.run.golden import Golden
from openneutron.run.runner import LiteRtRunner

Array = npt.NDArray[Any]
Frames = Sequence[Sequence[Array]]  # the inputs of each run; a model without state has one


def is_compiled(data: bytes, *, source: str) -> bool:
    """Return whether a LiteRT model has NeutronGraphs."""
    return any(is_graph_op(op) for op in read_model(data, source=source).main.operators)


def verify_litert(data: bytes, frames: Frames, options: Options) -> Verification:
    """Compile a LiteRT model and compare every layer of each run with the model itself.

    Example:
        >>> verify_litert(Path("model.tflite").read_bytes(), [[image]], Options(target="mcxn94x")).equal
        True
    """
    result = convert(data, options)
    return _verify(result.model, data, frames, result.report, options)


def verify_compiled(compiled: bytes, reference: bytes, frames: Frames, *, source: str) -> Verification:
    """Compare every layer of a compiled model with the model it was compiled from.

    The layers are found by compiling the reference again: the search for a schedule does not change them. Passes that were
    switched off do, which is reported as an error.
    """
    options = Options(target=_target(compiled, source), source=source)
    return _verify(compiled, reference, frames, convert(reference, options).report, options)


def _verify(compiled: bytes, reference: bytes, frames: Frames, report: Report, options: Options) -> Verification:
    source = options.source
    graph = read_model(compiled, source=source).main
    original, golden = _golden(reference, options)
    fold_constants(original)
    subjects: list[Subject] = []
    for position, op in enumerate(graph.operators):
        if not is_graph_op(op):
            continue
        number, where = len(subjects), f"{source}, operator {position} (NeutronGraph)"
        blocks = blocks_of(graph, op, outputs=len(op.outputs), where=where)
        layers = tuple(kernel for kernel in report.kernels if kernel.graph == number)
        inputs_of, outputs_of = border(original, report, number)
        subjects.append(
            Subject(
                number, where, blocks.microcode, blocks.weights, blocks.kernels, original, inputs_of, outputs_of, layers
            )
        )
    if not subjects:
        raise UnsupportedError(
            "nothing of the model runs on the NPU", where=source, hint="`openneutron compile` says why"
        )
    whole = LiteRtRunner(compiled, source=source)
    compared: list[Verification] = []
    with ExitStack() as stack:
        graphs = [(subject, stack.enter_context(open_verifier(subject))) for subject in subjects]
        for inputs in frames:
            values = golden(inputs)
            found = Verification()
            for subject, verify in graphs:
                found += verify([values[tensor] for tensor in subject.inputs], values)
            found += Verification(outputs=_whole(whole.run(inputs).outputs, original, values))
            compared.append(found)
    return stream_of(compared)


def _golden(reference: bytes, options: Options) -> tuple[Graph, Callable[[Sequence[Array]], dict[int, Array]]]:
    """Return the source's main graph with the report's numbering, and a function that computes all of its tensors.

    Layers inside a loop are only visible where it is unrolled; the outputs are those of the file itself.
    """
    source = options.source
    if not has_control_flow(read_model(reference, source=source).main):
        return read_model(reference, source=source).main, Golden(reference, source=source).run
    model = read_unrolled(reference, targets.load(options.target), options.operators_not_to_delegate, source=source)
    graph = model.main
    computed = [
        op for op in graph.operators if any(graph.tensors[t].data is None for t in op.outputs) or not op.outputs
    ]
    unrolled = replace(model, graphs=[replace(graph, operators=computed), *model.graphs[1:]])
    layers, itself = Golden(write_model(unrolled), source=source), LiteRtRunner(reference, source=source)

    def run(inputs: Sequence[Array]) -> dict[int, Array]:
        return layers.run(inputs) | dict(zip(graph.outputs, itself.run(inputs).outputs.values(), strict=True))

    return graph, run


def _whole(outputs: Mapping[str, Array], original: Graph, golden: dict[int, Array]) -> tuple[Layer, ...]:
    """Compare the model's own outputs, from a run of the whole file with its CPU operators."""
    found: list[Layer] = []
    for index, value in zip(original.outputs, outputs.values(), strict=True):
        tensor = original.tensors[index]
        compared = compare_layer(value, golden[index], zero_point(tensor))
        found.append(Layer(-1, -1, "model output", tensor.name, tensor.shape, **compared))
    return tuple(found)


def _target(compiled: bytes, source: str) -> str:
    from openneutron.machine.simulator import Simulator

    graph = read_model(compiled, source=source).main
    op = next(op for op in graph.operators if is_graph_op(op))
    if container_of(graph, op, where=source).made_by == "nxp":
        raise OptionError("it was made by NXP's converter", where=source, hint="only NXP's runtime runs it")
    blocks = blocks_of(graph, op, outputs=len(op.outputs), where=source)
    with Simulator(blocks.microcode, blocks.weights, blocks.kernels, where=source) as simulator:
        return simulator.info.target
