"""What-ifs: compile a model again with one change, and report the gain.

Example:
    >>> found = what_ifs([Path("model.tflite").read_bytes()], Options(target="imxrt700"), report)
    >>> min(found, key=lambda one: one.milliseconds).change
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from openneutron.analyze.what_if_channels import channel_what_ifs
from openneutron.board.answer import with_open_interval
from openneutron.board.merge import with_interval
from openneutron.compiler.pipeline import compile_model
from openneutron.errors import OpenNeutronError
from openneutron.machine import targets
from openneutron.options import OPTIMIZE, Options
from openneutron.report.model import Report, Totals, WhatIf
from openneutron.report.totals import delegate_bytes, merge_totals

# Budgets to try, as fractions of the present peak: slightly and much smaller ones, and larger ones.
_BUDGETS = ((3, 4), (1, 2), (2, 1), (4, 1))
_PAGE = 1024  # budgets are whole KiB, as people write them


def what_ifs(
    models: Sequence[bytes],
    options: Options,
    report: Report,
    *,
    elsewhere: bool = True,
    progress: Callable[[str], None] | None = None,
) -> tuple[WhatIf, ...]:
    """Compile with every change worth trying; changes that do not compile are omitted.

    `models` are the LiteRT models behind the report: the file itself, or one per delegate, compiled with `options`. Without
    `elsewhere` no other target is tried: delegates were partitioned for this one. For a PyTorch program time and memory
    are those of the whole program: the CPU's part around the delegates stays as it is.
    """
    stage = progress or (lambda text: None)
    found: list[WhatIf] = []
    for change, option, changed in _changes(options, report.totals, elsewhere):
        stage(f"trying: {change}")
        try:
            graphs = _totals(models, changed)
        except OpenNeutronError:
            continue  # too small a budget, or an operator without a kernel on the other target
        # Cycles are not comparable if fewer operators run on the NPU.
        totals = merge_totals(graphs)
        if totals.operators_converted == report.totals.operators_converted:
            memory = report.whole.arena_bytes + delegate_bytes(graphs, report.whole.graph_copy_bytes)
            found.append(in_whole_program(_what_if(change, option, changed, totals), totals, report, memory))
    if options.converter == "open":
        stage("pricing other channel counts")
        for one in channel_what_ifs(models, options, report):
            part = Totals(
                milliseconds=one.milliseconds, milliseconds_low=one.milliseconds_low,
                milliseconds_high=one.milliseconds_high,
            )  # fmt: skip
            found.append(in_whole_program(one, part, report, report.whole.memory_bytes))
    return tuple(found)


def in_whole_program(one: WhatIf, totals: Totals, report: Report, memory: int) -> WhatIf:
    """Return a what-if of the NPU's part in the unit of the whole program; as it is where there is no other part.

    `totals` has the changed time of the NPU, `memory` the bytes that the whole program then takes.
    """
    if not (report.whole.recipe and report.whole.timed):
        return one
    whole = with_interval(dataclasses.replace(report.whole, npu_milliseconds=totals.milliseconds), totals)
    return dataclasses.replace(
        one, milliseconds=whole.milliseconds, milliseconds_low=whole.milliseconds_low,
        milliseconds_high=whole.milliseconds_high, peak_bytes=memory, whole=True,
    )  # fmt: skip


def _what_if(change: str, option: str, changed: Options, totals: Totals) -> WhatIf:
    return WhatIf(
        change, option, changed.target, totals.cycles, totals.milliseconds, totals.peak_bytes,
        milliseconds_low=totals.milliseconds_low, milliseconds_high=totals.milliseconds_high,
    )  # fmt: skip


def _changes(options: Options, totals: Totals, elsewhere: bool) -> list[tuple[str, str, Options]]:
    """Yield a description, the command-line option, and the options of each change."""
    if options.converter != "open":
        return []
    found: list[tuple[str, str, Options]] = []
    for level in OPTIMIZE:
        if level != options.optimize:
            changed = dataclasses.replace(options, optimize=level)
            found.append((f"Search {_EFFORT[level]}", f"--optimize {level}", changed))
    if not options.fetch_constants_to_sram:
        changed = dataclasses.replace(options, fetch_constants_to_sram=True)
        found.append(("Prefetch weights from flash into SRAM", "--fetch-constants-to-sram", changed))
    for over, under in _BUDGETS:
        kib = max(totals.peak_bytes * over // under // _PAGE, 1)
        changed = dataclasses.replace(options, fit_bytes=kib * _PAGE)
        found.append((f"Give it {kib:,} KiB of memory", f"--fit {kib}K", changed))
    for name in targets.chips():
        if elsewhere and name != options.target:
            found.append((f"Run on {name}", f"--target {name}", dataclasses.replace(options, target=name)))
    return found


_EFFORT = {
    "fast": "less hard: whole tensors, no cascades",
    "default": "as hard as usual",
    "max": "harder for the smallest memory",
}


def _totals(models: Sequence[bytes], options: Options) -> list[Totals]:
    """Return the totals of each model; the answer for NXP's converter is not needed here."""
    return [with_open_interval(compile_model(model, options).report).totals for model in models]
