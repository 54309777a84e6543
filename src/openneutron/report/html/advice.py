"""Advice: what to change, ranked by the time it saves (the page can rank by memory or accuracy); all figures are measured."""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.report.model import Report, WhatIf

_MIN_RELATIVE_GAIN = 0.0005  # less than a twentieth of a per cent is rounding
_MIN_SQNR_GAIN_DB = 0.1  # smaller gains are within the variation between samples


@dataclass(frozen=True)
class Advice:
    """One what-if compared with this program: relative changes of time and memory, negative is better; gain in dB."""

    what_if: WhatIf
    time: float
    memory: float
    accuracy: float = 0.0

    @property
    def helps(self) -> bool:
        """Whether it gains enough to be worth its price: time, memory or accuracy."""
        return self.time < -_MIN_RELATIVE_GAIN or self.memory < -_MIN_RELATIVE_GAIN or self.accuracy > _MIN_SQNR_GAIN_DB

    @property
    def verdict(self) -> str:
        """The CSS class and word: "faster", "finer", "smaller", "slower" or "same"."""
        if self.time < -_MIN_RELATIVE_GAIN:
            return "faster"
        if self.accuracy > _MIN_SQNR_GAIN_DB:
            return "finer"
        if self.memory < -_MIN_RELATIVE_GAIN:
            return "smaller"
        return "slower" if self.time > _MIN_RELATIVE_GAIN else "same"


def advice(report: Report) -> list[Advice]:
    """Return the report's what-ifs, those that save most time first, other targets last.

    Changes without effect, or with no more than that of an earlier one, are omitted.
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
    # The first of equal ones is kept; a change to the model never equals an option.
    kept: dict[tuple[str, int, int, str, float | None], Advice] = {}
    for one in found:
        if (
            abs(one.time) > _MIN_RELATIVE_GAIN
            or abs(one.memory) > _MIN_RELATIVE_GAIN
            or abs(one.accuracy) > _MIN_SQNR_GAIN_DB
        ):
            what = one.what_if
            kept.setdefault((what.target, what.cycles, what.peak_bytes, what.proof, what.output_sqnr), one)
    return sorted(
        kept.values(), key=lambda one: (one.what_if.target != report.target, one.time, -one.accuracy, one.memory)
    )
