"""The compiler: takes a LiteRT file and returns one with NeutronGraph operators in it. Each stage has a file of its own.

unroll_control_flow → ingest, then for each group of operators:
legalize → fuse → choose_constant_forms → tile → schedule → allocate → emit → predict → verify → encode

Tile, schedule and allocate are driven by `plan`. Where two plans are compared (`_efforts`) both are emitted and priced; only
the cheaper one is verified and encoded.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from openneutron._version import __version__
from openneutron.compiler import l1
from openneutron.compiler.back import dump
from openneutron.compiler.back.emit import emit
from openneutron.compiler.back.predict import Timed, predict
from openneutron.compiler.back.store import choose_constant_forms, with_storage_forms
from openneutron.compiler.back.summary import Part, report_of
from openneutron.compiler.back.verify_schedule import verify
from openneutron.compiler.fitting import Fitting
from openneutron.compiler.front.fuse import fuse
from openneutron.compiler.front.ingest import Cut, Group, extract, ingest
from openneutron.compiler.front.left_out import unmatched_patterns
from openneutron.compiler.front.legalize import legalize
from openneutron.compiler.front.memory_limits import has_too_many_ends
from openneutron.compiler.front.parsed_model import OperatorCache, ParsedModel
from openneutron.compiler.front.unroll_control_flow import unroll_control_flow
from openneutron.compiler.kernels import abi_of
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.l2 import TaskList
from openneutron.compiler.passes.check_indices_first import check_indices_first
from openneutron.compiler.passes.materialize_outputs import materialize_outputs
from openneutron.compiler.passes.settle_states import settle_states
from openneutron.compiler.pause_gc import pause_gc
from openneutron.compiler.plan.constants import Constants
from openneutron.compiler.plan.search import plan
from openneutron.compiler.plan.shortage import Shortage, too_many_ends
from openneutron.compiler.plan.tile import Tiling
from openneutron.compiler.variables import Variables, variables_of
from openneutron.errors import InternalError, OptionError, UnsupportedError
from openneutron.litert.graph import Graph, Operator, copy_model
from openneutron.litert.passes.close_shapes import close_shapes
from openneutron.litert.passes.drop_graphs import drop_graphs
from openneutron.litert.passes.drop_tensors import drop_tensors
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.machine.runtime_memory import runtime_memory
from openneutron.machine.targets import Target
from openneutron.microcode.encode import encode_blocks
from openneutron.microcode.graph_op import add_graph_op, is_graph_op
from openneutron.microcode.instructions import Program
from openneutron.options import OPTIMIZE, Options, unmatched_warnings
from openneutron.result import Result


@dataclass
class Unit:
    """One compiled group with the results of all stages."""

    graph: KernelGraph
    tiling: Tiling
    tasks: TaskList
    program: Program
    microcode: bytes
    weights: bytes
    events: list[Timed]
    cycles: int
    passes: dict[str, int]
    constants: Constants
    notes: tuple[str, ...] = ()


def compile_graph(
    part: Graph,
    target: Target,
    options: Options,
    variables: Variables | None = None,
    checks: OperatorCache | None = None,
) -> Unit:
    """Run all stages on a graph of supported operators; where memory is short, once more with passes that save memory."""
    if has_too_many_ends(part):
        raise too_many_ends(len(part.inputs), len(part.outputs))
    try:
        return _compile_once(part, target, options, variables, checks, thrifty=False)
    except Shortage:
        return _compile_once(part, target, options, variables, checks, thrifty=True)


def _compile_once(
    part: Graph,
    target: Target,
    options: Options,
    variables: Variables | None,
    checks: OperatorCache | None,
    *,
    thrifty: bool,
) -> Unit:
    graph = legalize(part, target, variables, checks)
    l1.check(graph)
    # Neutron-S computes out of its TCM: constants always travel there.
    fetch = options.fetch_constants_to_sram or target.subsystem
    passes = fuse(graph, target, options.passes_off, fetch_constants=fetch, thrifty=thrifty)
    materialize_outputs(graph, target)
    check_indices_first(graph, target)
    settle_states(graph, target)
    l1.check(graph)
    budget = None
    if options.fit_bytes is not None:
        budget = options.fit_bytes - graph.io_bytes
    constants = choose_constant_forms(graph, target, options.passes_off, options.known_weights)
    units: list[Unit] = []
    for optimize in _efforts(target, options):
        try:
            chosen = plan(graph, target, constants, optimize=optimize, scratch_budget=budget, fetch_constants=fetch)
        except Shortage:
            if not units:
                raise
            break  # the first level found a plan within the budget, this one does not
        if chosen.notes and units:
            break  # whole tensors that do not fit the TCM
        program = emit(part, graph, chosen.tasks, target, profiling=options.use_profiling)
        program = with_storage_forms(program, constants, options.passes_off)
        events, cycles = predict(program, target)
        made = events, cycles, passes, constants, chosen.notes
        units.append(Unit(graph, chosen.tiling, chosen.tasks, program, b"", b"", *made))
    best = min(units, key=lambda unit: unit.cycles)
    verify(graph, best.tasks, target)
    best.microcode, best.weights = encode_blocks(best.program)
    return best


def _efforts(target: Target, options: Options) -> tuple[str, ...]:
    """Return the levels to plan with; the fastest result is delivered.

    `fast` is tried as well beside a data mover, where waiting for constants may cost more than fusing saves, and within a
    budget, where fewer stripes may need no more memory.
    """
    compared = options.optimize != "fast" and (target.tcm_bytes or options.fit_bytes is not None)
    return (options.optimize, "fast") if compared else (options.optimize,)


def _cut_and_compile(
    parsed: ParsedModel, target: Target, options: Options, variables: Variables
) -> tuple[Cut, dict[int, tuple[Unit, list[int], list[int]]]]:
    """Return the groups, and for each compiled one its unit, inputs and outputs, by position.

    A group that does not fit the target is cut, unless a budget or one graph was asked for. Operators that fit in no piece stay
    on the CPU, and the others are grouped again around them.
    """
    graph, folded = parsed.graph, parsed.folded
    fitting = Fitting(graph, target, options, variables, compile_graph, parsed.checks)
    refused = dict(parsed.control_flow.reasons)
    while True:
        cut = ingest(
            graph,
            target,
            minimum=0 if options.one_graph else options.minimum_operators_per_graph,
            left_out=options.operators_not_to_delegate,
            folded=folded,
            refused=refused,
            variables=variables,
            checks=parsed.checks,
        )
        groups: list[Group] = []
        units: dict[int, tuple[Unit, list[int], list[int]]] = {}
        left = len(refused)
        for group in cut.groups:
            for piece in fitting.split_to_fit(group.operators) if group.converted else [group.operators]:
                groups.append(Group(group.converted, piece))
                if not group.converted:
                    continue
                misfits = fitting.explain_misfits(piece, group)
                refused |= misfits
                if not misfits:
                    _, inputs, outputs = extract(graph, groups[-1])
                    units[len(groups) - 1] = fitting.unit(piece), inputs, outputs
        if len(refused) == left:
            return Cut(groups, cut.reasons, cut.dropped), units


def _release_constants(units: list[Unit], parts: list[Part]) -> None:
    """Drop the plain constants, which are in the operators as they are stored: the file is written beside them."""
    for unit, part in zip(units, parts, strict=True):
        unit.program = part.program = replace(part.program, weights=b"")
        unit.tasks.weights = unit.constants.block = b""


def _operator_order(graph: Graph, cut: Cut, units: dict[int, Operator]) -> list[Operator]:
    """Return the operators in execution order: a NeutronGraph for each compiled group, else the group's operators."""
    ordered: list[Operator] = []
    for at, group in enumerate(cut.groups):
        ordered += [units[at]] if at in units else [graph.operators[i] for i in group.operators]
    return ordered


def _certificate(compiled: bytes, source: bytes) -> str:
    """Prove the compiled file against its source; returns the certificate, raises an `InternalError` when it is refused."""
    from openneutron.certify.certificate import write
    from openneutron.certify.prove import prove
    from openneutron.certify.refused import Refused

    try:
        return write(prove(compiled, source), compiled, source)
    except Refused as error:
        raise InternalError(f"the compiled file is not proved: {error}") from None


_NO_SELECTION = (
    "no kernel selection is written for {}: an application links no kernels there, the payload lists those it calls"
)


def _selection(parts: list[Part], target: Target) -> str:
    """Return C source that lists the kernels that these NeutronGraphs call."""
    from openneutron.microcode.selection import selection_code

    called = {abi_of(node.kernel).id for part in parts for node in part.graph.nodes}
    return selection_code(called, target.name, __version__)


def compile_model(data: bytes, options: Options) -> Result:
    """Compile a LiteRT model; what has no kernel stays where it was, with its reason in the report.

    Example:
        >>> result = compile_model(Path("model.tflite").read_bytes(), Options(target="imxrt700"))
        >>> result.report.totals.cycles
    """
    return compile_parsed(parse_for(data, options), data, options)


@pause_gc()
def parse_for(data: bytes, options: Options) -> ParsedModel:
    """Parse a model for `compile_parsed`, which does not change it."""
    if options.optimize not in OPTIMIZE:
        raise OptionError(f"unknown optimization level {options.optimize!r}", hint=f"levels: {', '.join(OPTIMIZE)}")
    if options.extra_flags:
        raise OptionError(
            f"the open converter takes no extra flags ({' '.join(options.extra_flags)})",
            hint="they are handed to NXP's converter with --converter nxp",
        )
    target = targets.load(options.target)
    model = read_model(data, source=options.source)
    if any(is_graph_op(op) for op in model.main.operators):
        raise OptionError(
            "it was compiled for Neutron already", where=options.source,
            hint="give the .tflite it was made from; `openneutron inspect` reads this one",
        )  # fmt: skip
    kept = options.operators_not_to_delegate
    without_effect = unmatched_patterns(model, kept)  # before loops are unrolled: a pattern may name one
    return ParsedModel(model, target, unroll_control_flow(model, target, kept), without_effect)


@pause_gc()
def compile_parsed(parsed: ParsedModel, data: bytes, options: Options) -> Result:
    """Compile a model that is parsed already; `data` are its bytes."""
    began = time.perf_counter()
    target = targets.load(options.target)
    cut, units = _cut_and_compile(parsed, target, options, variables_of(parsed.model))
    folded = parsed.folded | cut.dropped
    model = copy_model(parsed.model)
    graph = model.main
    parts: list[Part] = []
    intermediates: dict[str, str] = {}
    operators: dict[int, Operator] = {}
    for at, (unit, inputs, outputs) in units.items():
        group = cut.groups[at]
        index = len(parts)
        operators[at] = add_graph_op(graph, index, unit.microcode, unit.weights, unit.program, inputs, outputs)
        parts.append(
            Part(
                index=index,
                operators=group.operators,
                graph=unit.graph,
                segments=unit.tiling.segments,
                tasks=unit.tasks,
                program=unit.program,
                microcode_bytes=len(unit.microcode),
                weight_bytes=len(unit.weights),
                events=unit.events,
                cycles=unit.cycles,
                passes=unit.passes,
                memory=runtime_memory(unit.microcode, unit.weights, unit.program),
                pareto=unit.tiling.pareto,
                notes=unit.notes,
            )
        )
        if options.dump_intermediates:
            from openneutron.microcode.disassemble import disassemble

            intermediates[f"graph{index}.l1.txt"] = dump.kernel_graph(unit.graph)
            intermediates[f"graph{index}.l2.txt"] = dump.task_list(unit.tasks)
            intermediates[f"graph{index}.microcode.txt"] = disassemble(unit.program)
    _release_constants([unit for unit, _, _ in units.values()], parts)
    source_operators = list(graph.operators)
    if not parts and not graph.operators:
        raise UnsupportedError("the model has no operators", where=options.source)
    graph.operators = _operator_order(graph, cut, operators)
    report = report_of(graph, source_operators, cut.reasons, parts, target, options, __version__, folded=folded)
    ignored = unmatched_warnings("operators_not_to_delegate", parsed.unmatched)
    report = replace(report, notes=(*report.notes, *parsed.control_flow.notes), warnings=(*report.warnings, *ignored))
    if parts:
        report = replace(report, notes=(*report.notes, *close_shapes(graph)))
    selects = options.dump_kernel_selection_code and not target.subsystem
    if options.dump_kernel_selection_code and not selects:
        report = replace(report, notes=(*report.notes, _NO_SELECTION.format(target.name)))
    drop_graphs(model)
    drop_tensors(model)
    written = write_model(model)
    if options.certificate:
        intermediates["certificate.json"] = _certificate(written, data)
    return Result(
        model=written,
        report=replace(report, seconds={"compiler": time.perf_counter() - began}),
        log=dump.conversion_log(report),
        kernel_selection_code=_selection(parts, target) if selects else "",
        kernel_selections=tuple(_selection([part], target) for part in parts) if selects else (),
        intermediates=intermediates,
    )
