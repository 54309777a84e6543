"""Check whether a model fits a chip, in which memories and how fast; if not, try changes that may help.

Example:
    >>> rows = fits([Path("model.tflite").read_bytes()], ["mcxn94x"], Limits(sram_bytes=65_536))
    >>> [(row.schedule, row.fits) for row in rows]
    [('stock', False), ('open', True)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from openneutron.board.answer import converted_by_stock
from openneutron.board.cpu import PORTABLE, delegate_call, on_core
from openneutron.board.flash import constant_bytes
from openneutron.board.merge import merge_stocks, with_interval
from openneutron.board.peak import largest_scratch, largest_weights, short
from openneutron.compiler.front.unroll_control_flow import read_unrolled
from openneutron.convert import convert
from openneutron.errors import OpenNeutronError
from openneutron.machine import targets
from openneutron.machine.targets import Target
from openneutron.options import OPTIMIZE, PROGRAM_CHANGES, SDK_VERSIONS, Options
from openneutron.report.latency import latency
from openneutron.report.model import Report, Stock, Whole
from openneutron.report.totals import delegate_bytes, merge_totals

Progress = Callable[[str], None]
STOCK, OPEN = "stock", "open"
CORE = "core"  # a target without an NPU: its core runs our schedule


@dataclass(frozen=True)
class Limits:
    """The user's limits; 0 means the chip's own memory, and no limit on milliseconds."""

    sram_bytes: int = 0
    flash_bytes: int = 0
    milliseconds: float = 0.0


@dataclass(frozen=True)
class Need:
    """Memory and time that one schedule of a model needs; the upper end of its interval counts as the time."""

    sram_bytes: int
    flash_bytes: int
    milliseconds: float
    milliseconds_low: float
    milliseconds_high: float
    on_npu: bool = True  # whether any operator runs on the NPU
    whole: bool = True  # whether the time is the program's, not only the NPU's


@dataclass(frozen=True)
class Change:
    """One tried change: what it needs, and what is still missing ("" if it fits)."""

    change: str
    option: str
    need: Need
    short: str

    @property
    def fits(self) -> bool:
        """Whether the model fits with it."""
        return not self.short


@dataclass(frozen=True)
class Row:
    """One target and one schedule: `short` says what is missing, `largest` what contributes most to it."""

    target: str
    schedule: str
    fits: bool
    need: Need
    sram_limit: int
    flash_limit: int
    milliseconds_limit: float
    short: str
    largest: str
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CpuPart:
    """The CPU part of a PyTorch program around its NeutronGraphs, as compiled for `target`."""

    whole: Whole
    target: str

    def on(self, target: Target) -> Whole:
        """Return the CPU part for another chip: times scale with the CPU's clock and core, memory is unchanged."""
        here, w = targets.load(self.target), self.whole
        clocks = here.cpu_clock_hz / target.cpu_clock_hz
        there, before = on_core(PORTABLE, target), on_core(PORTABLE, here)
        return replace(
            w,
            cpu_milliseconds=w.cpu_milliseconds * clocks * there.element / before.element,
            call_milliseconds=w.call_milliseconds * clocks * delegate_call(target) / delegate_call(here),
            copy_milliseconds=w.copy_milliseconds * clocks * there.move / before.move,
        )


class Programs(Protocol):
    """Compiles a PyTorch program, which is cut and quantized anew where its chip or its border changes."""

    def __call__(self, target: str, **options: Any) -> tuple[Sequence[bytes], CpuPart]:
        """Return the LiteRT models of its delegates, and the CPU part around them."""


@dataclass(frozen=True)
class _Case:
    """A model on a target, compiled under changing options."""

    models: Sequence[bytes]
    target: Target
    limits: Limits
    around: CpuPart | None
    source: str
    asked: Sequence[str] = ()  # chips with rows of their own
    programs: Programs | None = None  # for a PyTorch program
    sdk: str = SDK_VERSIONS[-1]

    def reports(self, **changed: object) -> list[Report]:
        options = replace(Options(target=self.target.name, source=self.source, sdk=self.sdk), **changed)  # type: ignore[arg-type]
        return [convert(model, options).report for model in self.models]

    def both(self, **changed: object) -> tuple[Need, Need, list[Report]]:
        """Return the needs of the stock and the open schedule."""
        reports = self.reports(**changed)
        return self._stock(reports), self._open(reports), reports

    def on_core(self) -> tuple[Need, list[Report]]:
        """Return what a processor without an NPU needs; there is no other part of the program that would be left out."""
        reports = self.reports()
        return replace(self._open(reports), whole=True), reports

    def _stock(self, reports: Sequence[Report]) -> Need:
        stocks = [report.stock for report in reports]
        stock: Stock = merge_stocks(stocks, self.around.on(self.target)) if self.around else stocks[0]
        flash = stock.weight_bytes + stock.microcode_bytes + stock.kernel_bytes
        memory = stock.arena_bytes + stock.prefetch_bytes + self._resident_bytes(flash, stock.prefetch_bytes)
        time = (stock.milliseconds, stock.milliseconds_low, stock.milliseconds_high)
        return Need(memory, flash + stock.cpu_constant_bytes, *time, on_npu=stock.graphs > 0)

    def _open(self, reports: Sequence[Report]) -> Need:
        graphs = [report.totals for report in reports]
        totals = merge_totals(graphs)
        flash = totals.weight_bytes + totals.microcode_bytes
        memory = totals.peak_bytes if self.target.subsystem else totals.runtime_bytes
        time = (totals.milliseconds, totals.milliseconds_low, totals.milliseconds_high)
        if self.around is not None:
            around = replace(self.around.on(self.target), npu_milliseconds=totals.milliseconds)
            whole = with_interval(around, totals)
            time = (whole.milliseconds, whole.milliseconds_low, whole.milliseconds_high)
            memory = whole.arena_bytes + delegate_bytes(graphs, whole.graph_copy_bytes)
            memory += 0 if self.target.subsystem else totals.context_bytes + totals.stack_bytes
        memory += self._resident_bytes(flash, totals.prefetch_bytes)
        flash += self._left_bytes(reports)
        return Need(memory, flash, *time, on_npu=totals.neutron_graphs > 0, whole=self.around is not None)

    def beside(self, reports: Sequence[Report]) -> int:
        """Return the open runtime's memory beside the planned memory: contexts, stack, alignment."""
        totals = merge_totals([report.totals for report in reports])
        return 0 if self.target.subsystem else totals.runtime_bytes - totals.peak_bytes

    def _left_bytes(self, reports: Sequence[Report]) -> int:
        """Return the constants of operators that stay on the CPU, which are in flash too."""
        total = 0
        for model, report in zip(self.models, reports, strict=True):
            left = [op.index for op in report.operators if not op.converted]
            graph = read_unrolled(model, self.target, source=self.source).main if left else None
            total += constant_bytes(graph, left) if graph is not None else 0
        return total

    def _resident_bytes(self, flash: int, prefetch: int) -> int:
        """Return the weights that are always in SRAM: if the NPU cannot read flash and does not fetch from it."""
        return 0 if self.target.npu_reads_flash or prefetch else flash

    @property
    def sram(self) -> int:
        return self.limits.sram_bytes or self.target.sram_bytes

    @property
    def flash(self) -> int:
        return self.limits.flash_bytes or self.target.flash_bytes

    @property
    def can_fetch(self) -> bool:
        """Whether fetching weights is an option: not if the NPU reads flash directly, or always fetches."""
        return not self.target.npu_reads_flash and not self.target.subsystem

    def is_late(self, need: Need) -> bool:
        """Return whether it may exceed the time limit."""
        return bool(self.limits.milliseconds) and need.milliseconds_high > self.limits.milliseconds

    def describe_shortfall(self, need: Need) -> str:
        """Describe what is missing; "" if nothing is."""
        found = [] if need.on_npu else ["nothing of it runs on the NPU"]
        if need.sram_bytes > self.sram:
            found.append(f"{need.sram_bytes - self.sram:,} bytes of {self.target.ram} short")
        if self.flash and need.flash_bytes > self.flash:
            found.append(f"{need.flash_bytes - self.flash:,} bytes of flash short")
        if self.is_late(need):
            found.append(f"up to {need.milliseconds_high - self.limits.milliseconds:.3f} ms late")
        return ", ".join(found)


def fits(
    models: Sequence[bytes],
    names: Sequence[str],
    limits: Limits,
    *,
    around: CpuPart | None = None,
    asked: Sequence[str] = (),
    programs: Programs | None = None,
    source: str = "<model>",
    progress: Progress | None = None,
    try_changes: bool = True,
    sdk: str = SDK_VERSIONS[-1],
) -> list[Row]:
    """Return a row for each target and schedule; `models` are the LiteRT model, or those of a PyTorch program's delegates.

    Without `try_changes` a row says what is missing and not what would help. For a PyTorch program `programs` compiles it
    for other chips and with other borders; `asked` are chips that are judged in other calls and are no changes here. `sdk` is
    the version of NXP's converter.
    """
    stage = progress or (lambda text: None)
    rows: list[Row] = []
    for name in names:
        case = _Case(models, targets.load(name), limits, around, source, (*names, *asked), programs, sdk)
        stage(f"planning for {name}")
        if case.target.processor:
            ours, reports = case.on_core()
            changes = _open_changes(case, ours, stage, case.beside(reports)) if try_changes else iter(())
            rows.append(_row(case, CORE, ours, reports, changes))
            continue
        stock, ours, reports = case.both()
        both = (_stock_changes(case, stock, stage), _open_changes(case, ours, stage, case.beside(reports)))
        stock_changes, open_changes = both if try_changes else (iter(()), iter(()))
        rows.append(_row(case, STOCK, stock, reports, stock_changes, ours))
        row = _row(case, OPEN, ours, reports, open_changes)
        rows.append(replace(row, notes=(*row.notes, *_without_npu(case))))
    return rows


def fits_all(rows: Sequence[Row]) -> bool:
    """Return whether what a board runs today fits every target: NXP's converter's result, our own on a core without an NPU."""
    made = {row.target: row for row in sorted(rows, key=lambda row: row.schedule == STOCK)}
    return all(row.fits for row in made.values())


def _without_npu(case: _Case) -> tuple[str, ...]:
    """Return what the chip's core would do alone, and whether the limits need the NPU; nothing of cores without costs."""
    chip = case.target
    if not targets.is_processor(chip.cpu):
        return ()
    core = targets.load(chip.cpu)
    try:
        need, _ = replace(case, target=core).on_core()
    except OpenNeutronError as error:
        return (f"without the NPU: {error.message}",)
    clocks = core.clock_hz / chip.cpu_clock_hz
    times = [clocks * time for time in (need.milliseconds, need.milliseconds_low, need.milliseconds_high)]
    need = replace(need, milliseconds=times[0], milliseconds_low=times[1], milliseconds_high=times[2])
    short = case.describe_shortfall(need)
    answer = short or ("the limits need no NPU" if case.limits.milliseconds else "fits")
    return (f"without the NPU, its {chip.cpu} alone: {describe_need(need)}: {answer}",)


def needs(
    models: Sequence[bytes], name: str, *, around: CpuPart | None = None, source: str = "<model>"
) -> tuple[Need, Need]:
    """Return what a model needs on one target: with NXP's converter, and in the open schedule.

    Example:
        >>> stock, ours = needs([Path("model.tflite").read_bytes()], "mcxn94x")
    """
    stock, ours, _ = _Case(models, targets.load(name), Limits(), around, source).both()
    return stock, ours


def _row(
    case: _Case,
    schedule: str,
    need: Need,
    reports: Sequence[Report],
    changes: Iterator[Change],
    ours: Need | None = None,
) -> Row:
    lacking = case.describe_shortfall(need)
    tried = list(changes) if lacking and need.on_npu else []
    if lacking and ours is not None and ours.on_npu:
        tried.append(Change("the open schedule, in the simulator only", "", ours, case.describe_shortfall(ours)))
    notes = tuple(dict.fromkeys(note for report in reports for note in report.stock.notes)) if schedule == STOCK else ()
    return Row(
        case.target.name, schedule, not lacking, need, case.sram, case.flash, case.limits.milliseconds, lacking,
        _largest(case, schedule, need, reports), tuple(tried), notes,
    )  # fmt: skip


def _stock_changes(case: _Case, need: Need, stage: Progress) -> Iterator[Change]:
    """Yield the changes possible with NXP's converter: fetching weights from flash, and other chips."""
    if need.sram_bytes > case.sram and case.can_fetch:
        yield from _try_change(
            case, stage, "fetch weights from flash layer by layer", STOCK, fetch_constants_to_sram=True
        )
    yield from _other_borders(case, stage, STOCK)
    yield from _elsewhere(case, stage, STOCK)


def _open_changes(case: _Case, need: Need, stage: Progress, beside: int) -> Iterator[Change]:
    """Yield the changes possible with our compiler: budgets, effort, fetching weights, and other chips.

    A budget covers I/O, scratch and prefetch, so it excludes the bytes `beside` them.
    """
    budget = case.sram - beside
    if need.sram_bytes > case.sram:
        for fetch in (False, True) if case.can_fetch else (False,):
            more: dict[str, object] = {"fetch_constants_to_sram": True} if fetch else {}
            if fetch:
                yield from _try_change(case, stage, "fetch weights from flash layer by layer", OPEN, **more)
            also = ", weights fetched from flash" if fetch else ""
            yield from _try_change(case, stage, f"search for the smallest memory{also}", OPEN, optimize="max", **more)
            if budget > 0:
                yield from _try_change(
                    case, stage, f"a budget of {budget:,} bytes{also}", OPEN, fit_bytes=budget, **more
                )
    if case.is_late(need):
        yield from _try_change(case, stage, "whole tensors, for the fewest calls", OPEN, optimize=OPTIMIZE[0])
    yield from _other_borders(case, stage, OPEN)
    yield from _elsewhere(case, stage, OPEN)


def _elsewhere(case: _Case, stage: Progress, schedule: str) -> Iterator[Change]:
    for name in targets.chips():
        if name in case.asked:
            continue
        moved, change = replace(case, target=targets.load(name)), f"on {name}"
        if case.programs is not None:
            yield _recompile(moved, stage, change, f"--target {name}", schedule, {})
            continue
        for one in _try_change(moved, stage, change, schedule):
            yield replace(one, option=f"--target {name}")


def _other_borders(case: _Case, stage: Progress, schedule: str) -> Iterator[Change]:
    """Yield what another border or placement of a PyTorch program gives; a LiteRT file has its border."""
    for change, options in PROGRAM_CHANGES if case.programs is not None else ():
        yield _recompile(case, stage, f"{change[0].lower()}{change[1:]}", _option(options), schedule, options)


def _recompile(
    case: _Case, stage: Progress, change: str, option: str, schedule: str, options: dict[str, Any]
) -> Change:
    """Compile the whole program for the case's chip with these options."""
    assert case.programs is not None
    stage(f"{case.target.name}: trying {change}")
    try:
        models, around = case.programs(case.target.name, **options)
        stock, ours, _ = replace(case, models=models, around=around).both()
    except OpenNeutronError as error:
        return Change(change, option, Need(0, 0, 0.0, 0.0, 0.0), error.message)
    need = stock if schedule == STOCK else ours
    return Change(change, option, need, case.describe_shortfall(need))


def _try_change(case: _Case, stage: Progress, change: str, schedule: str, **changed: object) -> Iterator[Change]:
    """Compile with one change; an error (such as a budget that no schedule meets) becomes what is missing."""
    stage(f"{case.target.name}: trying {change}")
    try:
        stock, ours, _ = case.both(**changed)
    except OpenNeutronError as error:
        yield Change(change, _option(changed), Need(0, 0, 0.0, 0.0, 0.0), error.message)
        return
    need = stock if schedule == STOCK else ours
    yield Change(change, _option(changed), need, case.describe_shortfall(need))


def _option(changed: dict[str, object]) -> str:
    """Return the option of `compile` for a change."""
    words = []
    for name, value in changed.items():
        option = {"fit_bytes": "fit"}.get(name, name).replace("_", "-")
        words.append(f"--{option}" if value is True else f"--{option} {value}")
    return " ".join(words)


def _largest(case: _Case, schedule: str, need: Need, reports: Sequence[Report]) -> str:
    """Describe the largest contributor to what is missing, or to the memory if nothing is."""
    if (case.flash and need.flash_bytes > case.flash) or need.flash_bytes > need.sram_bytes - need.flash_bytes > 0:
        made = [converted_by_stock(model, case.target, sdk=case.sdk) for model in case.models]
        return max((largest_weights(one, case.target) for one in made), key=len, default="")
    if case.is_late(need) and need.sram_bytes <= case.sram:
        kernels = [kernel for report in reports for kernel in report.kernels]
        top = max(kernels, key=lambda kernel: kernel.cycles, default=None)
        total = sum(kernel.cycles for kernel in kernels)
        return f"{top.kernel} {short(top.name)} ({top.cycles / total:.0%} of the NPU's time)" if top and total else ""
    if schedule == STOCK:
        made = [converted_by_stock(model, case.target, sdk=case.sdk) for model in case.models]
        found = max((largest_scratch(one) for one in made), key=len, default="")
        return found or max((largest_weights(one, case.target) for one in made), key=len, default="")
    buffers = [buffer for report in reports for buffer in report.buffers]
    big = max(buffers, key=lambda buffer: buffer.size, default=None)
    return f"{short(big.layer)} ({big.size:,} bytes)" if big else ""


def describe_need(need: Need) -> str:
    """Describe memory, flash and time of a need."""
    time = latency(need.milliseconds, need.milliseconds_low, need.milliseconds_high)
    time += "" if need.whole else " (NPU)"
    return f"{need.sram_bytes:,} bytes of RAM, {need.flash_bytes:,} of flash, {time}"
