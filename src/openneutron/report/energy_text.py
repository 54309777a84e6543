"""An energy estimate in words.

Example:
    >>> energy_text(report.energy)
    '0.448 mJ per inference (0.39 to 0.513), 0.144 mA in the mean, the battery lasts 66.6 days (58.2 to 76.4)'
"""

from __future__ import annotations

from openneutron.report.model import Energy

_DAY_HOURS, _YEAR_DAYS = 24, 365


def energy_text(energy: Energy) -> str:
    """Return the estimate as one sentence, or why there is none; "" if none was asked for."""
    if energy.unknown or not energy.millijoules:
        return energy.unknown
    each = f"{energy.millijoules:.3g} mJ per inference ({energy.millijoules_low:.3g} to {energy.millijoules_high:.3g})"
    mean = f"{energy.milliamperes:.3g} mA in the mean"
    if not energy.days:
        return f"{each}, {mean}"
    return f"{each}, {mean}, the battery lasts {_time(energy.days)} ({_time(energy.days_low)} to {_time(energy.days_high)})"


def _time(days: float) -> str:
    if days < 2:
        return f"{days * _DAY_HOURS:.3g} hours"
    return f"{days:.3g} days" if days < 2 * _YEAR_DAYS else f"{days / _YEAR_DAYS:.3g} years"
