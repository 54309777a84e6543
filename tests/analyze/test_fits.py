"""Fits: what is missing, what takes it, and changes that were tried."""

from __future__ import annotations

import pytest

from benchmarks.board_networks import BOARD_NETWORKS
from benchmarks.networks import Layers
from openneutron.analyze.fits import CpuPart, Limits, fits, fits_all
from openneutron.convert import convert
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.report.model import Whole
from tests import tiny
from tests.loops import Loop


@pytest.fixture(scope="module")
def cifarnet() -> bytes:
    return BOARD_NETWORKS["cifarnet"]()


def test_a_small_model_fits_in_both_schedules(cifarnet: bytes) -> None:
    stock, ours = fits([cifarnet], ["mcxn94x"], Limits())
    assert (stock.schedule, ours.schedule) == ("stock", "open")
    assert stock.fits and ours.fits and not stock.changes
    assert stock.need.sram_bytes == 44_832 and stock.sram_limit == targets.load("mcxn94x").sram_bytes
    assert "32,768" in stock.largest and "8,192" in stock.largest


def test_missing_bytes_are_exact_and_changes_are_tried(cifarnet: bytes) -> None:
    stock, ours = fits([cifarnet], ["mcxn94x"], Limits(sram_bytes=40_960))
    assert not stock.fits and ours.fits
    assert stock.short == "3,872 bytes of SRAM short"
    tried = {change.change: change for change in stock.changes}
    assert tried["the open schedule, in the simulator only"].fits
    assert not tried["on imxrt700"].fits  # its weights lie in SRAM


def test_fetching_weights_frees_sram_where_the_npu_does_not_read_flash(cifarnet: bytes) -> None:
    stock, _ = fits([cifarnet], ["imxrt700"], Limits(sram_bytes=120_000))
    tried = {change.change: change for change in stock.changes}
    change = tried["fetch weights from flash layer by layer"]
    assert not stock.fits and change.fits and change.option == "--fetch-constants-to-sram"
    assert change.need.milliseconds > stock.need.milliseconds


def test_a_budget_that_no_schedule_meets_says_how_many_bytes_are_missing(cifarnet: bytes) -> None:
    """The budget is what the runtime's context and stack leave of the memory; none is tried where they leave nothing."""
    _, ours = fits([cifarnet], ["mcxn94x"], Limits(sram_bytes=16_384))
    totals = convert(cifarnet, Options(target="mcxn94x")).report.totals
    tried = {change.option: change for change in ours.changes}
    left = 16_384 - (totals.runtime_bytes - totals.peak_bytes)
    assert not ours.fits and "more than the budget" in tried[f"--fit {left}"].short
    _, ours = fits([cifarnet], ["mcxn94x"], Limits(sram_bytes=4_096))
    assert not ours.fits and not any("--fit" in change.option for change in ours.changes)


def test_flash_smaller_than_the_weights_names_the_largest_layer(cifarnet: bytes) -> None:
    stock, ours = fits([cifarnet], ["mcxn94x"], Limits(flash_bytes=65_536))
    assert stock.short == "27,031 bytes of flash short" and ours.short.endswith("bytes of flash short")
    assert "weights of" in stock.largest and "51,712" in stock.largest


def test_the_converters_version_decides(cifarnet: bytes) -> None:
    old, new = (fits([cifarnet], ["imxrt700"], Limits(), sdk=sdk)[0].need for sdk in ("2.x", "3.1"))
    assert old.sram_bytes != new.sram_bytes and old.milliseconds != new.milliseconds


def test_time_is_judged_by_the_upper_end(cifarnet: bytes) -> None:
    (stock, _) = fits([cifarnet], ["imxrt700"], Limits())
    between = (stock.need.milliseconds + stock.need.milliseconds_high) / 2
    late, _ = fits([cifarnet], ["imxrt700"], Limits(milliseconds=between))
    assert stock.fits and not late.fits and "ms late" in late.short


def test_a_model_that_nothing_of_runs_on_the_npu_does_not_fit() -> None:
    net = Layers((1, 16))
    stock, ours = fits([net.finish(net.dequantize(net.input))], ["mcxn94x"], Limits())
    assert not stock.fits and not ours.fits and "nothing of it runs on the NPU" in stock.short
    assert not stock.changes and not ours.changes


def test_a_chip_that_has_a_row_is_not_told_again_as_a_change(cifarnet: bytes) -> None:
    for names in (["mcxn94x"], ["mcxn94x", "imxrt700"]):
        others = set(targets.chips()) - set(names)
        stock = fits([cifarnet], names, Limits(sram_bytes=4_096))[0]
        assert {one.option.removeprefix("--target ") for one in stock.changes if "--target" in one.option} == others


def test_what_surrounds_a_pytorch_program_goes_with_the_clock(cifarnet: bytes) -> None:
    around = CpuPart(Whole(cpu_milliseconds=1.0, arena_bytes=1000, recipe="neutron"), "imxrt700")
    (near, _), (far, _) = (fits([cifarnet], [name], Limits(), around=around) for name in ("imxrt700", "mcxn94x"))
    (bare, _) = fits([cifarnet], ["mcxn94x"], Limits())
    assert far.need.milliseconds - bare.need.milliseconds == pytest.approx(324 / 150)
    assert near.need.milliseconds < far.need.milliseconds
    assert far.need.sram_bytes == 1000 + 40_960


def test_what_a_loop_leaves_on_the_cpu_is_counted_by_its_own_operators() -> None:
    _, ours = fits([Loop(outputs=("sequence", "counter")).data()], ["mcxn94x"], Limits())
    assert ours.fits and ours.need.flash_bytes > 0


def test_a_core_without_an_npu_has_no_row_of_nxps_converter() -> None:
    rows = fits([tiny.convnet()], ["cortex_m33", "mcxn94x"], Limits(sram_bytes=2048))
    assert [(row.target, row.schedule) for row in rows] == [
        ("cortex_m33", "core"),
        ("mcxn94x", "stock"),
        ("mcxn94x", "open"),
    ]
    core, stock, ours = rows
    assert (core.fits, stock.fits, ours.fits) == (False, True, False)
    assert not fits_all(rows) and fits_all([stock, ours]) and not fits_all([core])


def test_one_target_and_option_set_has_one_lateness(cifarnet: bytes) -> None:
    limits = Limits(milliseconds=0.01)
    own = {(row.target, row.schedule): row.short for row in fits([cifarnet], ["imxrt700"], limits)}
    for row in fits([cifarnet], ["mcxn94x"], limits):
        (told,) = (one.short for one in row.changes if one.option == "--target imxrt700")
        assert told == own["imxrt700", row.schedule]
