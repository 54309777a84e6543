"""Energy of an inference and life of a battery, from a chip's currents and the estimated busy time.

The chip runs for one inference, then sleeps until the next one. Regulator losses, sensors, radios, the battery's self-discharge
and what waking up costs are not in it.

Example:
    >>> found = energy(targets.load("mcxn94x"), (6.8, 5.9, 7.8), parse_duty("1/s"), parse_battery("230mAh@3V"))
    >>> round(found.milliamperes, 3)
    0.144
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from openneutron.errors import OptionError
from openneutron.machine import targets
from openneutron.machine.targets import Power, Target
from openneutron.report.model import Energy, Report

_UNITS = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0}
_DAY_HOURS = 24


@dataclass(frozen=True)
class Battery:
    """A battery's charge and voltage."""

    milliamp_hours: float
    volts: float


def parse_duty(text: str) -> float:
    """Return the seconds between two inferences of a text such as "1/s", "10/min" or "1/h".

    Example:
        >>> parse_duty("4/min")
        15.0
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*/\s*(\w+)", text.strip().lower())
    if found is None or found[2] not in _UNITS or not float(found[1]):
        raise OptionError(f"--duty is {text!r}", hint="say how often it runs, such as 1/s, 10/min or 1/h")
    return _UNITS[found[2]] / float(found[1])


def parse_battery(text: str) -> Battery:
    """Return the battery of a text such as "230mAh@3V" or "2Ah@3.7V".

    Example:
        >>> parse_battery("2Ah@3.7V").milliamp_hours
        2000.0
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(m?)ah\s*@\s*(\d+(?:\.\d+)?)\s*v", text.strip().lower())
    if found is None or not float(found[1]) or not float(found[3]):
        raise OptionError(f"--battery is {text!r}", hint="give charge and voltage, such as 230mAh@3V or 2Ah@3.7V")
    return Battery(float(found[1]) * (1.0 if found[2] else 1e3), float(found[3]))


def with_energy(report: Report, duty: str, battery: str) -> Report:
    """Return the report with the energy that the program of NXP's converter takes on the chip; without a duty, unchanged.

    Example:
        >>> with_energy(report, "1/s", "230mAh@3V").energy.days
    """
    if not duty:
        if battery:
            raise OptionError("--battery needs --duty", hint="say how often it runs, such as --duty 1/s")
        return report
    period, cell = parse_duty(duty), parse_battery(battery) if battery else None
    stock = report.stock
    if not stock.graphs:
        return replace(report, energy=Energy(unknown="nothing of it runs on the NPU"))
    times = (stock.milliseconds, stock.milliseconds_low, stock.milliseconds_high)
    return replace(report, energy=energy(targets.load(report.target), times, period, cell))


def energy(
    target: Target, milliseconds: tuple[float, float, float], period: float, battery: Battery | None = None
) -> Energy:
    """Return the energy of an inference that takes the given time, low and high end, every `period` seconds.

    Where no currents of the chip are public, or the inferences do not fit the period, the result says so.
    """
    power = target.power
    if power is None:
        return Energy(unknown=f"no currents of {target.name} are public")
    if (high := milliseconds[2]) > period * 1e3:
        wanted = f"one every {period * 1e3:.4g} ms is asked for"
        return Energy(unknown=f"an inference takes up to {high:.4g} ms, and {wanted}", sources=power.sources)
    volts = battery.volts if battery else power.volts
    joules = [_charge(power, one) * volts for one in milliseconds]
    currents = [_mean_current(power, one, period) for one in milliseconds]
    days = [battery.milliamp_hours / one / _DAY_HOURS if battery else 0.0 for one in currents]
    return Energy(joules[0], joules[1], joules[2], currents[0], days[0], days[2], days[1], power.sources)


def _charge(power: Power, milliseconds: float) -> float:
    """Return the charge of an inference in millicoulombs."""
    return power.active_milliamperes * milliseconds / 1e3


def _mean_current(power: Power, milliseconds: float, period: float) -> float:
    """Return the mean current in milliamperes: active for one inference, asleep for the rest of the period."""
    busy = milliseconds / 1e3 / period
    return power.active_milliamperes * busy + power.sleep_milliamperes * (1 - busy)
