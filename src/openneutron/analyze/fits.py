"""Fits: does a model fit a chip, in which memory, how fast; and if not, which changes help, each of them tried.

Example:
    >>> rows = fits([Path("model.tflite").read_bytes()], ["mcxn94x"], Limits(sram_bytes=65_536))
    >>> [(row.schedule, row.fits) for row in rows]
    [('stock', False), ('open', True)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from openneutron.board.answer import converted_by_stock
from openneutron.board.cpu import PORTABLE, delegate_call, on_core
from openneutron.board.flash import constant_bytes
from openneutron.board.merge import merge_stocks, with_interval
from openneutron.board.peak import largest_scratch, largest_weights, short
from openneutron.compiler.front.straighten import straight_model
from openneutron.convert import convert
from openneutron.errors import OpenNeutronError
from openneutron.machine import targets
from openneutron.machine.targets import Target
from openneutron.options import OPTIMIZE, Options
from openneutron.report.latency import latency
from openneutron.report.model import Report, Stock, Whole
from openneutron.report.totals import delegate_bytes, merge_totals

Progress = Callable[[str], None]
STOCK, OPEN = "stock", "open"


@dataclass(frozen=True)
class Limits:
    """What the user allows; 0 takes what the chip has, for milliseconds no limit."""

    sram_bytes: int = 0
    flash_bytes: int = 0
    milliseconds: float = 0.0


@dataclass(frozen=True)
class Need:
    """What one schedule of a model needs; time is judged by the upper end of its interval."""

    sram_bytes: int
    flash_bytes: int
    milliseconds: float
    milliseconds_low: float
    milliseconds_high: float
    on_npu: bool = True  # whether any operator is
    whole: bool = True  # whether the time is the program's, not the NPU's alone


@dataclass(frozen=True)
class Change:
    """One change, tried: what it needs then, and what is still missing ("" when it fits)."""

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
    """One target and one schedule: `short` says what is missing, `largest` what takes the most of that."""

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
class Around:
    """What surrounds the NeutronGraphs of a PyTorch program, as it was compiled for `target`."""

    whole: Whole
    target: str

    def on(self, target: Target) -> Whole:
        """The same on another chip: times go with the CPU's clock and what its core takes, memory stays."""
        here, w = targets.load(self.target), self.whole
        clocks = here.cpu_clock_hz / target.cpu_clock_hz
        there, before = on_core(PORTABLE, target), on_core(PORTABLE, here)
        return replace(
            w,
            cpu_milliseconds=w.cpu_milliseconds * clocks * there.element / before.element,
            call_milliseconds=w.call_milliseconds * clocks * delegate_call(target) / delegate_call(here),
            copy_milliseconds=w.copy_milliseconds * clocks * there.move / before.move,
        )


@dataclass(frozen=True)
class _Case:
    """A model on a target, to be asked for needs under changed options."""

    models: Sequence[bytes]
    target: Target
    limits: Limits
    around: Around | None
    source: str
    asked: Sequence[str] = ()  # the chips that have rows of their own

    def reports(self, **changed: object) -> list[Report]:
        options = replace(Options(target=self.target.name, source=self.source), **changed)  # type: ignore[arg-type]
        return [convert(model, options).report for model in self.models]

    def both(self, **changed: object) -> tuple[Need, Need, list[Report]]:
        """Needs of the stock and the open schedule."""
        reports = self.reports(**changed)
        return self._stock(reports), self._open(reports), reports

    def _stock(self, reports: Sequence[Report]) -> Need:
        stocks = [report.stock for report in reports]
        stock: Stock = merge_stocks(stocks, self.around.on(self.target)) if self.around else stocks[0]
        flash = stock.weight_bytes + stock.microcode_bytes
        memory = stock.arena_bytes + stock.prefetch_bytes + self._resident(flash, stock.prefetch_bytes)
        time = (stock.milliseconds, stock.milliseconds_low, stock.milliseconds_high)
        return Need(memory, flash + stock.cpu_constant_bytes, *time, on_npu=stock.graphs > 0)

    def _open(self, reports: Sequence[Report]) -> Need:
        graphs = [report.totals for report in reports]
        totals = merge_totals(graphs)
        flash = totals.weight_bytes + totals.microcode_bytes
        memory = totals.peak_bytes
        time = (totals.milliseconds, totals.milliseconds_low, totals.milliseconds_high)
        if self.around is not None:
            around = replace(self.around.on(self.target), npu_milliseconds=totals.milliseconds)
            whole = with_interval(around, totals)
            time = (whole.milliseconds, whole.milliseconds_low, whole.milliseconds_high)
            memory = whole.arena_bytes + delegate_bytes(graphs, whole.graph_copy_bytes)
        memory += self._resident(flash, totals.prefetch_bytes)
        flash += self._left_bytes(reports)
        return Need(memory, flash, *time, on_npu=totals.neutron_graphs > 0, whole=self.around is not None)

    def _left_bytes(self, reports: Sequence[Report]) -> int:
        """Constants of operators that stay on the CPU: they are in flash too."""
        total = 0
        for model, report in zip(self.models, reports, strict=True):
            left = [op.index for op in report.operators if not op.converted]
            graph = straight_model(model, self.target, source=self.source).main if left else None
            total += constant_bytes(graph, left) if graph is not None else 0
        return total

    def _resident(self, flash: int, prefetch: int) -> int:
        """Weights that must lie in SRAM all the time: where the NPU cannot read flash and does not fetch from it."""
        return 0 if self.target.npu_reads_flash or prefetch else flash

    @property
    def sram(self) -> int:
        return self.limits.sram_bytes or self.target.sram_bytes

    @property
    def flash(self) -> int:
        return self.limits.flash_bytes or self.target.flash_bytes

    @property
    def can_fetch(self) -> bool:
        """Whether weights in SRAM are a choice: not where the NPU reads flash, or always fetches."""
        return not self.target.npu_reads_flash and not self.target.subsystem

    def is_late(self, need: Need) -> bool:
        """Whether it may take longer than allowed."""
        return bool(self.limits.milliseconds) and need.milliseconds_high > self.limits.milliseconds

    def missing(self, need: Need) -> str:
        """What is missing, in words; "" when nothing is."""
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
    around: Around | None = None,
    source: str = "<model>",
    progress: Progress | None = None,
) -> list[Row]:
    """A row for each target and schedule; `models` are the LiteRT model, or those behind a PyTorch program."""
    stage = progress or (lambda text: None)
    rows: list[Row] = []
    for name in names:
        case = _Case(models, targets.load(name), limits, around, source, names)
        stage(f"planning for {name}")
        stock, ours, reports = case.both()
        rows.append(_row(case, STOCK, stock, reports, _stock_changes(case, stock, stage), ours))
        rows.append(_row(case, OPEN, ours, reports, _open_changes(case, ours, stage)))
    return rows


def needs(
    models: Sequence[bytes], name: str, *, around: Around | None = None, source: str = "<model>"
) -> tuple[Need, Need]:
    """What a model needs on one target: by NXP's converter, and in the open schedule.

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
    lacking = case.missing(need)
    tried = list(changes) if lacking and need.on_npu else []
    if lacking and ours is not None and ours.on_npu:
        tried.append(Change("the open schedule, in the simulator only", "", ours, case.missing(ours)))
    notes = tuple(dict.fromkeys(note for report in reports for note in report.stock.notes)) if schedule == STOCK else ()
    return Row(
        case.target.name, schedule, not lacking, need, case.sram, case.flash, case.limits.milliseconds, lacking,
        _largest(case, schedule, need, reports), tuple(tried), notes,
    )  # fmt: skip


def _stock_changes(case: _Case, need: Need, stage: Progress) -> Iterator[Change]:
    """What NXP's converter offers: fetching weights from flash; and other chips."""
    if need.sram_bytes > case.sram and case.can_fetch:
        yield from _tried(case, stage, "fetch weights from flash layer by layer", STOCK, fetch_constants_to_sram=True)
    yield from _elsewhere(case, stage, STOCK)


def _open_changes(case: _Case, need: Need, stage: Progress) -> Iterator[Change]:
    """What our compiler offers: budgets, effort, fetching weights; and other chips."""
    if need.sram_bytes > case.sram:
        for fetch in (False, True) if case.can_fetch else (False,):
            more: dict[str, object] = {"fetch_constants_to_sram": True} if fetch else {}
            if fetch:
                yield from _tried(case, stage, "fetch weights from flash layer by layer", OPEN, **more)
            also = ", weights fetched from flash" if fetch else ""
            yield from _tried(case, stage, f"search for the smallest memory{also}", OPEN, optimize="max", **more)
            yield from _tried(case, stage, f"a budget of {case.sram:,} bytes{also}", OPEN, fit_bytes=case.sram, **more)
    if case.is_late(need):
        yield from _tried(case, stage, "whole tensors, for the fewest calls", OPEN, optimize=OPTIMIZE[0])
    yield from _elsewhere(case, stage, OPEN)


def _elsewhere(case: _Case, stage: Progress, schedule: str) -> Iterator[Change]:
    for name in targets.names():
        if name not in case.asked:
            moved = replace(case, target=targets.load(name))
            for change in _tried(moved, stage, f"on {name}", schedule):
                yield replace(change, option=f"--target {name}")


def _tried(case: _Case, stage: Progress, change: str, schedule: str, **changed: object) -> Iterator[Change]:
    """One change compiled; an error (a budget that no schedule meets) is what is missing then."""
    stage(f"{case.target.name}: trying {change}")
    try:
        stock, ours, _ = case.both(**changed)
    except OpenNeutronError as error:
        yield Change(change, _option(changed), Need(0, 0, 0.0, 0.0, 0.0), error.message)
        return
    need = stock if schedule == STOCK else ours
    yield Change(change, _option(changed), need, case.missing(need))


def _option(changed: dict[str, object]) -> str:
    """How to ask for it on the command line of `compile`."""
    words = []
    for name, value in changed.items():
        option = {"fit_bytes": "fit"}.get(name, name).replace("_", "-")
        words.append(f"--{option}" if value is True else f"--{option} {value}")
    return " ".join(words)


def _largest(case: _Case, schedule: str, need: Need, reports: Sequence[Report]) -> str:
    """The largest contributor to what is missing, or to the memory where nothing is."""
    if (case.flash and need.flash_bytes > case.flash) or need.flash_bytes > need.sram_bytes - need.flash_bytes > 0:
        made = [converted_by_stock(model, case.target) for model in case.models]
        return max((largest_weights(one) for one in made), key=len, default="")
    if case.is_late(need) and need.sram_bytes <= case.sram:
        kernels = [kernel for report in reports for kernel in report.kernels]
        top = max(kernels, key=lambda kernel: kernel.cycles, default=None)
        total = sum(kernel.cycles for kernel in kernels)
        return f"{top.kernel} {short(top.name)} ({top.cycles / total:.0%} of the NPU's time)" if top and total else ""
    if schedule == STOCK:
        made = [converted_by_stock(model, case.target) for model in case.models]
        return max((largest_scratch(one) for one in made), key=len, default="")
    buffers = [buffer for report in reports for buffer in report.buffers]
    big = max(buffers, key=lambda buffer: buffer.size, default=None)
    return f"{short(big.layer)} ({big.size:,} bytes)" if big else ""


def spoken(need: Need) -> str:
    """Memory, flash and time of a need, for people."""
    time = latency(need.milliseconds, need.milliseconds_low, need.milliseconds_high)
    time += "" if need.whole else " (NPU)"
    return f"{need.sram_bytes:,} bytes of RAM, {need.flash_bytes:,} of flash, {time}"
