"""What to change, ranked by the time it saves (the page can rank by memory or accuracy); every figure was measured."""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.report.model import Report, WhatIf

_NOTHING = 0.0005  # less than a twentieth of a per cent is noise of rounding, not advice
_HEARD = 0.1  # decibels: less is within what other samples would give


@dataclass(frozen=True)
class Advice:
    """One what-if beside this program: relative changes of time and memory, negative is better; decibels gained."""

    what_if: WhatIf
    time: float
    memory: float
    accuracy: float = 0.0

    @property
    def helps(self) -> bool:
        """Whether it gains anything worth its price: time, memory or accuracy."""
        return self.time < -_NOTHING or self.memory < -_NOTHING or self.accuracy > _HEARD

    @property
    def verdict(self) -> str:
        """The CSS class and word: "faster", "finer", "smaller", "slower" or "same"."""
        if self.time < -_NOTHING:
            return "faster"
        if self.accuracy > _HEARD:
            return "finer"
        if self.memory < -_NOTHING:
            return "smaller"
        return "slower" if self.time > _NOTHING else "same"


def advice(report: Report) -> list[Advice]:
    """The report's what-ifs, what saves most time first, other targets last.

    What changes nothing, or no more than another one already did, is left out.
    """
    totals, whole = report.totals, report.whole
    if not totals.milliseconds or not totals.peak_bytes:
        return []
    alone = (totals.milliseconds, totals.peak_bytes)
    together = (whole.milliseconds, whole.memory_bytes) if whole.recipe and whole.memory_bytes else alone
    found = [
        Advice(
            one,
            one.milliseconds / (together if one.whole else alone)[0] - 1,
            one.peak_bytes / (together if one.whole else alone)[1] - 1,
            one.output_sqnr - report.output_sqnr
            if one.output_sqnr is not None and report.output_sqnr is not None
            else 0.0,
        )
        for one in report.what_ifs
    ]
    # The first of equals stays; a change to the model is no equal of an option.
    kept: dict[tuple[str, int, int, str, float | None], Advice] = {}
    for one in found:
        if abs(one.time) > _NOTHING or abs(one.memory) > _NOTHING or abs(one.accuracy) > _HEARD:
            what = one.what_if
            kept.setdefault((what.target, what.cycles, what.peak_bytes, what.proof, what.output_sqnr), one)
    return sorted(
        kept.values(), key=lambda one: (one.what_if.target != report.target, one.time, -one.accuracy, one.memory)
    )
