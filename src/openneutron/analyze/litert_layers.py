"""Verifying LiteRT models: one that is not compiled yet, or a compiled one with the model it came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from openneutron.analyze.layer import Layer, compare_layer
from openneutron.analyze.verify import Subject, Verification, border, verify_subject, zero_point
from openneutron.convert import convert
from openneutron.errors import OptionError, UnsupportedError
from openneutron.litert.graph import Graph
from openneutron.litert.passes.fold_constants import fold_constants
from openneutron.litert.read import read_model
from openneutron.microcode.container import container_of
from openneutron.microcode.graph_op import blocks_of, is_graph_op
from openneutron.options import Options
from openneutron.report.model import Report
from openneutron.run.golden import golden_values
from openneutron.run.runner import LiteRtRunner

Array = npt.NDArray[Any]


def is_compiled(data: bytes, *, source: str) -> bool:
    """Whether a LiteRT model has NeutronGraphs."""
    return any(is_graph_op(op) for op in read_model(data, source=source).main.operators)


def verify_litert(data: bytes, inputs: Sequence[Array], options: Options) -> Verification:
    """Compile a LiteRT model and compare every layer of the run with the model itself.

    Example:
        >>> verify_litert(Path("model.tflite").read_bytes(), [image], Options(target="mcxn94x")).equal
        True
    """
    result = convert(data, options)
    return _verify(result.model, data, inputs, result.report, options.source)


def verify_compiled(compiled: bytes, reference: bytes, inputs: Sequence[Array], *, source: str) -> Verification:
    """Compare every layer of a compiled model with the model it was compiled from.

    The layers are found by compiling the reference again: how a schedule was searched for does not change them. Passes
    that were switched off do, which an error says.
    """
    report = convert(reference, Options(target=_target(compiled, source), source=source)).report
    return _verify(compiled, reference, inputs, report, source)


def _verify(compiled: bytes, reference: bytes, inputs: Sequence[Array], report: Report, source: str) -> Verification:
    graph = read_model(compiled, source=source).main
    original = read_model(reference, source=source).main
    fold_constants(original)
    golden = golden_values(reference, inputs, source=source)
    found = Verification()
    number = 0
    for position, op in enumerate(graph.operators):
        if not is_graph_op(op):
            continue
        where = f"{source}, operator {position} (NeutronGraph)"
        blocks = blocks_of(graph, op, outputs=len(op.outputs), where=where)
        layers = tuple(kernel for kernel in report.kernels if kernel.graph == number)
        inputs_of, outputs_of = border(original, report, number)
        subject = Subject(
            number, where, blocks.microcode, blocks.weights, blocks.kernels, original, inputs_of, outputs_of, layers
        )
        found += verify_subject(subject, [golden[tensor] for tensor in subject.inputs], golden)
        number += 1
    if number == 0:
        raise UnsupportedError(
            "nothing of the model runs on the NPU", where=source, hint="`openneutron compile` says why"
        )
    return found + Verification(outputs=_whole(compiled, inputs, original, golden, source))


def _whole(
    compiled: bytes, inputs: Sequence[Array], original: Graph, golden: dict[int, Array], source: str
) -> tuple[Layer, ...]:
    """The model's own outputs, from a run of all of it: NeutronGraphs and CPU operators one after another."""
    outputs = LiteRtRunner(compiled, source=source).run(inputs).outputs
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
