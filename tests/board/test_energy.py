"""Energy from currents and busy time, with the reasons for having none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import openneutron
from openneutron.board.energy import Battery, energy, parse_battery, parse_duty
from openneutron.cli.main import run
from openneutron.errors import OptionError
from openneutron.machine import targets
from openneutron.report.energy_text import energy_text
from openneutron.report.model import Energy
from tests import tiny

MCXN = targets.load("mcxn94x")
TIMES = (10.0, 8.0, 12.5)


@pytest.mark.parametrize(("text", "seconds"), [("1/s", 1.0), ("4/min", 15.0), ("0.5 / h", 7200.0), ("2/day", 43200.0)])
def test_a_duty_is_read(text: str, seconds: float) -> None:
    assert parse_duty(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "0/s", "1/fortnight", "-1/s", "1", "1/s/s", "nan/s"])
def test_a_wrong_duty_is_named(text: str) -> None:
    with pytest.raises(OptionError, match="--duty is"):
        parse_duty(text)


@pytest.mark.parametrize("text", ["230@3V", "230mAh", "0mAh@3V", "230mAh@0V", "230mAh@", "1kWh@3V"])
def test_a_wrong_battery_is_named(text: str) -> None:
    with pytest.raises(OptionError, match="--battery is"):
        parse_battery(text)


def test_energy_is_charge_times_voltage_and_the_battery_lasts_its_charge_over_the_mean_current() -> None:
    assert MCXN.power is not None
    found = energy(MCXN, TIMES, 1.0, parse_battery("230mAh@3V"))
    active, sleep = MCXN.power.active_milliamperes, MCXN.power.sleep_milliamperes
    assert found.millijoules == pytest.approx(active * 0.010 * 3)
    assert (found.millijoules_low, found.millijoules_high) == pytest.approx((active * 0.024, active * 0.0375))
    assert found.milliamperes == pytest.approx(active * 0.010 + sleep * 0.990)
    assert found.days == pytest.approx(230 / found.milliamperes / 24)
    assert found.days_low < found.days < found.days_high
    assert len(found.sources) == 2 and any("assumed" in source for source in found.sources)
    assert energy(MCXN, TIMES, 1.0).millijoules == pytest.approx(active * 0.010 * MCXN.power.volts)


def test_a_chip_without_currents_has_no_energy_and_says_so() -> None:
    for chip in targets.chips():
        target = targets.load(chip)
        found = energy(target, TIMES, 1.0, Battery(100, 3))
        assert (found.unknown == f"no currents of {chip} are public") == (target.power is None)
        assert not found.millijoules if target.power is None else found.millijoules


def test_inferences_that_do_not_fit_their_period_are_said() -> None:
    found = energy(MCXN, TIMES, 0.011)
    assert "up to 12.5 ms" in found.unknown and energy_text(found) == found.unknown


def test_words_name_hours_days_and_years() -> None:
    words = [energy_text(Energy(1, 1, 1, 1, days, days, days)) for days in (0.5, 20, 4 * 365)]
    assert ["12 hours" in words[0], "20 days" in words[1], "4 years" in words[2]] == [True] * 3
    assert energy_text(Energy()) == "" and "battery" not in energy_text(Energy(1, 1, 1, 1))


def test_a_compile_reports_it_and_its_program_is_unchanged() -> None:
    plain = openneutron.compile(tiny.convnet(), target="mcxn94x")
    program = openneutron.compile(tiny.convnet(), target="mcxn94x", duty="1/s", battery="230mAh@3V")
    assert program.data == plain.data and plain.report.energy == Energy()
    assert program.report.energy.days > 1
    with pytest.raises(OptionError, match="--battery needs --duty"):
        openneutron.compile(tiny.convnet(), battery="230mAh@3V")


def test_fits_prints_it_for_each_chip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("convnet.tflite").write_bytes(tiny.convnet())
    chips = ["--target", "mcxn94x", "--target", "imxrt700"]
    words = ["fits", "convnet.tflite", *chips, "--duty", "1/s", "--battery", "1Ah@3V"]
    assert run(words) == 0
    text = capsys.readouterr().out
    assert "mJ per inference" in text and "no currents of imxrt700 are public" in text and "assumed" in text
    assert run([*words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows[0]["energy"]["days"] > 1 and rows[2]["energy"]["unknown"]
