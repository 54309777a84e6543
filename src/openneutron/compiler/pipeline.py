"""The compiler: LiteRT bytes in, LiteRT bytes with NeutronGraph operators out. Stages in order, each its own file.

ingest → legalize → fuse → tile → schedule → allocate → verify → emit
"""

from __future__ import annotations

import time

from openneutron._version import __version__
from openneutron.compiler import l1
from openneutron.compiler.back import dump
from openneutron.compiler.back.emit import emit
from openneutron.compiler.back.predict import Timed, predict
from openneutron.compiler.back.store import stored, stored_constants
from openneutron.compiler.back.summary import Part, report_of
from openneutron.compiler.back.verify_schedule import verify
from openneutron.compiler.collector import paused
from openneutron.compiler.fitting import Fitting
from openneutron.compiler.front.fuse import fuse
from openneutron.compiler.front.ingest import Cut, Group, extract, ingest
from openneutron.compiler.front.legalize import legalize
from openneutron.compiler.front.misfits import is_crowded
from openneutron.compiler.front.opened import Checks, Opened
from openneutron.compiler.front.straighten import straighten
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.l2 import TaskList
from openneutron.compiler.names import abi_of
from openneutron.compiler.passes.materialize_outputs import materialize_outputs
from openneutron.compiler.passes.settle_states import settle_states
from openneutron.compiler.plan.constants import Constants
from openneutron.compiler.plan.search import plan
from openneutron.compiler.plan.shortage import Shortage, too_many_ends
from openneutron.compiler.plan.tile import Tiling
from openneutron.compiler.variables import Variables, variables_of
from openneutron.errors import InternalError, OptionError, UnsupportedError
from openneutron.litert.graph import Graph, Operator, copied
from openneutron.litert.passes.close_shapes import close_shapes
from openneutron.litert.passes.drop_graphs import drop_graphs
from openneutron.litert.passes.drop_tensors import drop_tensors
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.machine.targets import Target
from openneutron.microcode.encode import encode_blocks
from openneutron.microcode.graph_op import add_graph_op, is_graph_op
from openneutron.microcode.instructions import Program
from openneutron.options import OPTIMIZE, Options
from openneutron.records import dataclass, replace
from openneutron.result import Result


@dataclass
class Unit:
    """One compiled group with everything the stages made of it."""

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
    part: Graph, target: Target, options: Options, variables: Variables | None = None, checks: Checks | None = None
) -> Unit:
    """All stages on a graph whose operators are all supported; where memory is short, a second, thriftier try."""
    if is_crowded(part):
        raise too_many_ends(len(part.inputs), len(part.outputs))
    try:
        return _compiled(part, target, options, variables, checks, thrifty=False)
    except Shortage:
        return _compiled(part, target, options, variables, checks, thrifty=True)


def _compiled(
    part: Graph, target: Target, options: Options, variables: Variables | None, checks: Checks | None, *, thrifty: bool
) -> Unit:
    graph = legalize(part, target, variables, checks)
    l1.check(graph)
    # Neutron-S computes out of its TCM: constants always travel there.
    fetch = options.fetch_constants_to_sram or target.subsystem
    passes = fuse(graph, target, options.passes_off, fetch_constants=fetch, thrifty=thrifty)
    materialize_outputs(graph, target)
    settle_states(graph, target)
    l1.check(graph)
    budget = None
    if options.fit_bytes is not None:
        budget = options.fit_bytes - graph.io_bytes
    constants = stored_constants(graph, target, options.passes_off)
    units: list[Unit] = []
    for optimize in _efforts(target, options):
        chosen = plan(graph, target, constants, optimize=optimize, scratch_budget=budget, fetch_constants=fetch)
        if chosen.notes and units:
            break  # whole tensors that do not fit the TCM
        program = emit(part, graph, chosen.tasks, target, profiling=options.use_profiling)
        program = stored(program, constants, options.passes_off)
        events, cycles = predict(program, target)
        made = events, cycles, passes, constants, chosen.notes
        units.append(Unit(graph, chosen.tiling, chosen.tasks, program, b"", b"", *made))
    best = min(units, key=lambda unit: unit.cycles)
    verify(graph, best.tasks, target)
    best.microcode, best.weights = encode_blocks(best.program)
    return best


def _efforts(target: Target, options: Options) -> tuple[str, ...]:
    """Levels to plan with; beside a data mover, where waiting for constants may cost more than fusing saves, also `fast`."""
    compared = target.tcm_bytes and options.optimize != "fast" and options.fit_bytes is None
    return (options.optimize, "fast") if compared else (options.optimize,)


def _cut_and_compiled(
    opened: Opened, target: Target, options: Options, variables: Variables
) -> tuple[Cut, dict[int, tuple[Unit, list[int], list[int]]]]:
    """The groups, and by position the compiled ones with their inputs and outputs.

    Where a group does not fit the target it is cut, unless a budget or a whole graph was asked for. Operators that fit in no
    piece are left, and the rest is grouped anew around them.
    """
    graph, folded = opened.graph, opened.folded
    fitting = Fitting(graph, target, options, variables, compile_graph, opened.checks)
    refused = dict(opened.straight.reasons)
    while True:
        cut = ingest(
            graph,
            target,
            minimum=0 if options.one_graph else options.minimum_operators_per_graph,
            left_out=options.operators_not_to_delegate,
            folded=folded,
            refused=refused,
            variables=variables,
            checks=opened.checks,
        )
        groups: list[Group] = []
        units: dict[int, tuple[Unit, list[int], list[int]]] = {}
        left = len(refused)
        for group in cut.groups:
            for piece in fitting.pieces(group.operators) if group.converted else [group.operators]:
                groups.append(Group(group.converted, piece))
                if not group.converted:
                    continue
                misfits = fitting.misfits(piece, group)
                refused |= misfits
                if not misfits:
                    _, inputs, outputs = extract(graph, groups[-1])
                    units[len(groups) - 1] = fitting.unit(piece), inputs, outputs
        if len(refused) == left:
            return Cut(groups, cut.reasons, cut.dropped), units


def _operator_order(graph: Graph, cut: Cut, units: dict[int, Operator]) -> list[Operator]:
    """Groups in execution order: a NeutronGraph, or the operators that stay."""
    ordered: list[Operator] = []
    for at, group in enumerate(cut.groups):
        ordered += [units[at]] if at in units else [graph.operators[i] for i in group.operators]
    return ordered


def _certificate(compiled: bytes, source: bytes) -> str:
    """The compiled file proved against its source, and what the proof found; an `InternalError` when it is refused."""
    from openneutron.certify.certificate import write
    from openneutron.certify.prove import prove
    from openneutron.certify.refused import Refused

    try:
        return write(prove(compiled, source), compiled, source)
    except Refused as error:
        raise InternalError(f"the compiled file is not proved: {error}") from None


def _selection(parts: list[Part], target: Target) -> str:
    """The kernels that these NeutronGraphs call, as C source."""
    from openneutron.microcode.selection import selection_code

    called = {abi_of(node.kernel).id for part in parts for node in part.graph.nodes}
    return selection_code(called, target.name, __version__)


def compile_model(data: bytes, options: Options) -> Result:
    """Compile a LiteRT model; what has no kernel stays where it was, with its reason in the report.

    Example:
        >>> result = compile_model(Path("model.tflite").read_bytes(), Options(target="imxrt700"))
        >>> result.report.totals.cycles
    """
    return compile_opened(opened_for(data, options), data, options)


@paused()
def opened_for(data: bytes, options: Options) -> Opened:
    """The model opened for `compile_opened`, which leaves it as it is."""
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
    straight = straighten(model, target, options.operators_not_to_delegate)
    return Opened(model, target, straight)


@paused()
def compile_opened(opened: Opened, data: bytes, options: Options) -> Result:
    """As `compile_model`, of a model that is open already; `data` are its bytes."""
    began = time.perf_counter()
    target = targets.load(options.target)
    cut, units = _cut_and_compiled(opened, target, options, variables_of(opened.model))
    folded = opened.folded | cut.dropped
    model = copied(opened.model)
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
                pareto=unit.tiling.pareto,
                notes=unit.notes,
            )
        )
        if options.dump_intermediates:
            from openneutron.microcode.disassemble import disassemble

            intermediates[f"graph{index}.l1.txt"] = dump.kernel_graph(unit.graph)
            intermediates[f"graph{index}.l2.txt"] = dump.task_list(unit.tasks)
            intermediates[f"graph{index}.microcode.txt"] = disassemble(unit.program)
    source_operators = list(graph.operators)
    if not parts and not graph.operators:
        raise UnsupportedError("the model has no operators", where=options.source)
    graph.operators = _operator_order(graph, cut, operators)
    report = report_of(graph, source_operators, cut.reasons, parts, target, options, __version__, folded=folded)
    report = replace(report, notes=(*report.notes, *opened.straight.notes))
    if parts:
        report = replace(report, notes=(*report.notes, *close_shapes(graph)))
    drop_graphs(model)
    drop_tensors(model)
    written = write_model(model)
    if options.certificate:
        intermediates["certificate.json"] = _certificate(written, data)
    return Result(
        model=written,
        report=replace(report, seconds={"compiler": time.perf_counter() - began}),
        log=dump.conversion_log(report),
        kernel_selection_code=_selection(parts, target) if options.dump_kernel_selection_code else "",
        kernel_selections=tuple(_selection([part], target) for part in parts)
        if options.dump_kernel_selection_code
        else (),
        intermediates=intermediates,
    )
