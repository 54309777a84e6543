"""A quantized program as one LiteRT file with NeutronGraphs, in place of a `.pte`.

Everything between the quantize of an input and the dequantize of an output becomes LiteRT operators; the compiler takes
those that the NPU runs into NeutronGraphs and leaves the others to LiteRT's own kernels. Inputs and outputs are stored
numbers (INT8, or INT16 with 16-bit activations) with their scales in the file, but an output whose parts have so different
ranges that no one scale covers them, such as boxes and scores, is joined in float32. Images are NHWC; with
`use_neutron_for_format_conversion` the file transposes and they are NCHW.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from executorch.exir.backend.partitioner import PartitionResult
from torch.export import ExportedProgram
from torch.fx import Node

from openneutron.convert import convert
from openneutron.errors import NoReference, UnsupportedError
from openneutron.executorch.capture.checks import check_scales
from openneutron.executorch.capture.export import Inputs, check_program
from openneutron.executorch.compile_spec import spec_options, to_specs
from openneutron.executorch.fx import is_dequantize, is_quantize, operator_name, source_line
from openneutron.executorch.lower.encoding import Constants, Rejected
from openneutron.executorch.lower.lowering import Lowered, Region, lower
from openneutron.executorch.partition.partitioner import NeutronPartitioner
from openneutron.executorch.partition.trial_lowering import Check
from openneutron.executorch.quantize.accuracy import GOOD, warnings_of_outputs, worst_sqnr
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantize.loss import loss
from openneutron.executorch.quantize.low_bit_modules import with_plain_weights
from openneutron.executorch.quantized_model import quantize
from openneutron.executorch.stage_times import Stages
from openneutron.executorch.torch_lock import torch_lock
from openneutron.litert.write import write_model
from openneutron.options import LITERT, SCHEMA, Options
from openneutron.program import Program
from openneutron.report.model import OutputAccuracy, Report
from openneutron.run.runner import runner_of
from openneutron.verdict import OK

_CUT = "; of a detector, --cut-head ends the model there"
LITERT_MODEL = "model.tflite"  # among a program's intermediates: what was compiled


def lower_whole_program(program: ExportedProgram, options: Options, *, where: str = "") -> Lowered:
    """The whole program as a LiteRT model; an error names the node that has no LiteRT form.

    Example:
        >>> data = write_model(lower_whole_program(quantized_program, Options(target="imxrt700")).model)
    """
    from executorch.exir import to_edge_transform_and_lower

    whole = _WholeProgram(to_specs(options))
    to_edge_transform_and_lower(program, partitioner=[whole])
    if whole.problem is not None:
        node, reason = whole.problem.node, whole.problem.reason
        raise UnsupportedError(
            f"{source_line(node) or node.name} cannot be written to LiteRT: {reason.message}", where=where,
            hint="write a .pte, which leaves it to ExecuTorch" + (_CUT if operator_name(node) == "aten.topk.default" else ""),
        )  # fmt: skip
    assert whole.lowered is not None
    return whole.lowered


class _WholeProgram(NeutronPartitioner):
    """Gets the program as the NPU's partitioner does, lowers all of it, and delegates nothing."""

    lowered: Lowered | None = None
    problem: Rejected | None = None

    def _check(self) -> Check:
        """Accept every operator: the converter decides which of them the NPU runs."""
        return lambda signature: OK

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Lower, and keep the result or the problem."""
        constants = Constants(exported_program, self._take_known(exported_program))
        graph = exported_program.graph
        outputs = [node for node in graph.output_node().args[0] if isinstance(node, Node)]
        entering = [node for node in graph.nodes if is_quantize(node) and _is_input(node.args[0], constants)]
        leaving = {node for node in outputs if is_dequantize(node) and len(node.users) == 1}
        nodes = [node for node in graph.nodes if node.op == "call_function" and node not in {*entering, *leaving}]
        stored = [node.args[0] if node in leaving else node for node in outputs]
        try:
            region = Region(nodes, entering, stored)  # type: ignore[arg-type]
            self.lowered = lower(region, constants, self.options, float_joins=True)
        except Rejected as rejected:
            self.problem = rejected
        except KeyError as error:  # an output that nothing stores
            node = error.args[0]
            self.problem = Rejected(node, _reason_not_stored(node)) if isinstance(node, Node) else None
            if self.problem is None:
                raise
        self._finished = True
        return PartitionResult(tagged_exported_program=exported_program, partition_tags={})


def _is_input(node: Any, constants: Constants) -> bool:
    return isinstance(node, Node) and node.op == "placeholder" and node not in constants


def _reason_not_stored(node: Node) -> Any:
    from openneutron.verdict import Reason

    return Reason("float_output", "its result is a float that nothing quantizes", node.name, "quantize it")


def _rename(lowered: Lowered, inputs: Sequence[str], outputs: Sequence[str], program: ExportedProgram) -> None:
    """Give the model's inputs and outputs the caller's names; an input that nothing reads does not exist any more."""
    graph = lowered.model.main
    known = dict(zip(program.graph_signature.user_inputs, inputs, strict=False))
    for node, tensor in zip(lowered.inputs, graph.inputs, strict=True):
        source = node.args[0]
        assert isinstance(source, Node)
        graph.tensors[tensor].name = known.get(source.name, source.name)
    for wanted, tensor in zip(outputs, graph.outputs, strict=False):
        graph.tensors[tensor].name = wanted


def _check_rest(model: bytes, report: Report, name: str) -> None:
    """Refuse a file whose operators outside the NeutronGraphs are none that LiteRT has: nobody could run it."""
    left = [one for one in report.operators if not one.converted]
    if not left or report.converter != "open":
        return
    try:
        runner_of(model, name).prepare()
    except NoReference as error:
        which = f"{len(left)} operators stay on the CPU, the first is {left[0].code} ({left[0].name})"
        raise UnsupportedError(
            f"the rest of the model cannot be written to LiteRT: {error.message}; {which}", where=name,
            hint="write a .pte, which leaves it to ExecuTorch",
        ) from error  # fmt: skip


@torch_lock()
def compile_to_litert(
    source: Any,
    example_inputs: Inputs | None,
    *,
    calibration: Any = None,
    name: str = "",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    progress: Any = None,
    **options: Any,
) -> Program:
    """Compile a module or a quantized program to a LiteRT file; `options` are those of `openneutron.compile`.

    `inputs` and `outputs` are what the file calls them, all of them in order.

    Example:
        >>> compile_to_litert(module, inputs, calibration=batches, target="imxrt700").save("model.tflite")
    """
    stages = Stages(progress)
    chosen = Choices.of(options)
    channels_last = options.pop("channels_last", False)
    source, chosen, notes = with_plain_weights(source, chosen)
    quantized, program = None, source
    compared: tuple[OutputAccuracy, ...] = ()
    if not isinstance(source, ExportedProgram):
        assert example_inputs is not None
        made = quantize(source, example_inputs, calibration, chosen, channels_last=channels_last, stages=stages)
        quantized, compared, program, notes = made.module, made.compare(), made.program, (*notes, *made.notes)
    check_program(program, from_module=quantized is not None)
    check_scales(program)
    shared = {one: value for one, value in options.items() if LITERT in SCHEMA[one].fronts}
    layout = {one: options[one] for one in ("use_neutron_for_format_conversion",) if one in options}
    with stages("lowering to LiteRT"):
        all_of_it = {one: value for one, value in shared.items() if one != "operators_not_to_delegate"}
        lowered = lower_whole_program(program, spec_options({**all_of_it, **layout}), where=name)
    _rename(lowered, inputs, outputs, program)
    data = write_model(lowered.model)
    with stages("compiling"):
        result = convert(data, Options(source=name, **shared))
        _check_rest(result.model, result.report, name)
    report = dataclasses.replace(
        result.report, output_sqnr=worst_sqnr(compared), outputs=compared, seconds=stages.seconds,
        notes=(*result.report.notes, *notes), warnings=(*result.report.warnings, *warnings_of_outputs(compared)),
    )  # fmt: skip
    if quantized is not None and report.output_sqnr is not None and report.output_sqnr < GOOD:
        warning = loss(report, source, quantized, calibration)
        report = dataclasses.replace(report, warnings=(*report.warnings, warning))
    return Program(
        result.model, "tflite", report, result.kernel_selection_code, {LITERT_MODEL: data, **result.intermediates},
        quantized, kernel_selections=result.kernel_selections, loader=runner_of,
    )  # fmt: skip
