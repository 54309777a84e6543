"""Lowers a quantized program to the `.pte`, runs it to measure its accuracy, and writes its report.

Example:
    >>> deliver = Delivery(spec, stages, engines, "all", "neutron", False, "auto", "net.py", {})
    >>> built = deliver.finish(deliver(exported, session))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from openneutron.board.merge import merge_stocks, with_interval
from openneutron.errors import OpenNeutronError
from openneutron.executorch.capture.checks import check_scales
from openneutron.executorch.capture.decoder_facts import decoder_constants, with_given
from openneutron.executorch.capture.export import (
    Inputs,
    check_program,
    one_thread,
)
from openneutron.executorch.deliver.backend import Partition
from openneutron.executorch.deliver.merge import merge_reports
from openneutron.executorch.deliver.session import CompileSession
from openneutron.executorch.engines import Engines
from openneutron.executorch.partition.passes.remove_border_quantize import Border
from openneutron.executorch.place.whole_program import whole_program, with_cpu_times
from openneutron.executorch.program_lowering import LoweredProgram, lower_program
from openneutron.executorch.quantize.accuracy import (
    GOOD,
    compare_outputs,
    run_all,
    warnings_of_outputs,
    worst_sqnr,
)
from openneutron.executorch.quantize.loss import loss
from openneutron.executorch.quantize.states import restore, states_of
from openneutron.executorch.quantized_model import Quantized
from openneutron.executorch.run.runtime import runner_of
from openneutron.executorch.stage_times import Stages
from openneutron.executorch.upstream.edge_names import info_of
from openneutron.executorch.upstream.switch import notes as upstream_notes
from openneutron.microcode.decode import header_of
from openneutron.microcode.payload import delegate_blobs, parse_payload
from openneutron.options import Options, unmatched_warnings
from openneutron.report.facts import figure_of
from openneutron.report.model import OutputAccuracy, Report
from openneutron.report.text import text_notes


@dataclass(frozen=True)
class Built:
    """A compiled program with what comparisons need.

    `quantized` is the converted PT2E module, `made` what it was made with, `edge` the lowered Edge program, `partitions` hold
    LiteRT models.
    """

    pte: bytes
    report: Report
    partitions: tuple[Partition, ...]
    quantized: GraphModule | None
    edge: ExportedProgram
    borders: tuple[Border, ...] = ()
    etrecord: Callable[[], Any] | None = None
    made: Quantized | None = None


@dataclass(frozen=True)
class Delivery:
    """Lowers quantized programs with the settings of one compile, measures them and writes their reports."""

    spec: Options
    stages: Stages
    engines: Engines
    placement: str
    recipe: str
    int8_io: bool
    metric: str
    source: str
    constants: Mapping[str, Any]

    def __call__(
        self,
        program: ExportedProgram,
        session: CompileSession,
        quantized: GraphModule | None = None,
        made: Quantized | None = None,
        notes: tuple[str, ...] = (),
    ) -> Built:
        """Lower a program and measure it; `made` has what its results are compared with."""
        check_program(program, from_module=quantized is not None)
        check_scales(program)
        found = decoder_constants(program)
        lowered = lower_program(
            program, self.spec, self.stages, int8_io=self.int8_io, engines=self.engines, placement=self.placement,
            session=session, constants=with_given(found, self.constants),
        )  # fmt: skip
        compared: tuple[OutputAccuracy, ...] = ()
        warnings: tuple[str, ...] = ()
        if made is not None:
            with self.stages("measuring accuracy"):
                compared, measured_how = delivered_accuracy(lowered.pte, made, int8_io=self.int8_io, metric=self.metric)
            notes, warnings = (*notes, *made.notes, *measured_how), made.warnings
        partitions = tuple(partitions_of(lowered.edge.graph_module))
        target = self.spec.target
        report = merge_reports(
            list(partitions), lowered.verdicts, target=target, converter=self.spec.converter, source=self.source
        )
        whole = whole_program(
            lowered.edge, list(partitions), target=target, recipe=self.recipe, arena_bytes=lowered.arena_bytes
        )
        report = dataclasses.replace(
            report,
            nodes=with_cpu_times(report.nodes, whole),
            whole=with_interval(whole, report.totals),
            stock=merge_stocks([partition.report.stock for partition in partitions], whole),
            files={"pte": len(lowered.pte)},
            passes={**report.passes, "make_islands_contiguous": lowered.copies.count},
            output_sqnr=worst_sqnr(compared),
            outputs=compared,
            notes=(
                *report.notes,
                *_lowering_notes(lowered),
                *upstream_notes(),
                *map(str, lowered.borders),
                *_output_notes(compared),
                *notes,
            ),
            warnings=(
                *report.warnings,
                *warnings,
                *unmatched_warnings("operators_not_to_delegate", lowered.unmatched),
                *warnings_of_outputs(compared),
            ),
        )
        if found:
            text = text_notes(report, context=found["get_max_seq_len"], cache_bytes=state_bytes(lowered.pte))
            report = dataclasses.replace(report, notes=(*text, *report.notes))
        return Built(lowered.pte, report, partitions, quantized, lowered.edge, lowered.borders, lowered.etrecord, made)

    def finish(
        self, built: Built, model: torch.nn.Module | ExportedProgram | None = None, samples: Sequence[Inputs] = ()
    ) -> Built:
        """Name the layer that loses accuracy where the report has none good enough, and add the seconds of all stages."""
        report, quantized = built.report, built.quantized
        if model is not None and quantized is not None and report.output_sqnr is not None and report.output_sqnr < GOOD:
            with self.stages("looking for the layer that loses accuracy"), one_thread():
                states = states_of(quantized)
                warning = loss(report, model, quantized, samples)
                restore(quantized, states)
            report = dataclasses.replace(report, warnings=(*report.warnings, warning))
        return dataclasses.replace(
            built, report=dataclasses.replace(report, seconds=_seconds(self.stages, built.partitions))
        )


def state_bytes(pte: bytes) -> int:
    """Return the bytes that the delegates of a program keep between calls."""
    # Views, because weights would be copied.
    payloads = (parse_payload(memoryview(one), where="<pte>") for one in delegate_blobs(pte))
    return sum(header_of(one.microcode)["state_bytes"] for one in payloads if one.converter == "open")


def delivered_accuracy(
    pte: bytes, made: Quantized, *, int8_io: bool, metric: str = "auto"
) -> tuple[tuple[OutputAccuracy, ...], tuple[str, ...]]:
    """The accuracy of the written program, measured by running it here, and notes about the measurement.

    A program that cannot run here, or whose inputs and outputs are INT8, is measured as its PT2E module.
    """
    if int8_io:
        return made.compare(metric), ("accuracy is that of the PT2E module: the program itself takes and gives INT8",)
    try:
        runner = runner_of(pte, "the program")
        found = run_all(runner.run, made.samples, len(made.samples))
        return compare_outputs(made.wanted, found, made.labels, metric=metric), ()
    except OpenNeutronError as error:
        return made.compare(metric), (
            f"accuracy is that of the PT2E module: the program does not run here ({error.message})",
        )


def partitions_of(module: GraphModule) -> Iterator[Partition]:
    """What is known about each delegate of a lowered program, in order of execution."""
    from executorch.exir.delegate import executorch_call_delegate

    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is executorch_call_delegate:
            found = info_of(getattr(module, node.args[0].target))
            if isinstance(found, Partition):
                yield found


def _lowering_notes(lowered: LoweredProgram) -> Iterator[str]:
    copies = lowered.copies
    if copies.count:
        yield f"{copies.count} tensors ({copies.bytes:,} bytes) are copied to contiguous order for operators on the CPU"
    if lowered.retraced:
        yield f"ExecuTorch retraced the program, which takes longer, because of {lowered.retraced}"


def _output_notes(outputs: Sequence[OutputAccuracy]) -> tuple[str, ...]:
    """The accuracy of each output, where the program's one figure does not say it: several outputs, or one without SQNR."""
    if len(outputs) < 2 and all(one.sqnr is not None for one in outputs):
        return ()
    return (f"accuracy of the outputs: {', '.join(map(figure_of, outputs))}",)


def _seconds(stages: Stages, partitions: Sequence[Partition]) -> dict[str, float]:
    compiler = sum(partition.report.seconds.get("compiler", 0.0) for partition in partitions)
    return {**stages.seconds, "compiler": compiler}
