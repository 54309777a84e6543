"""Rules by version: every rule has a source, and the newest one of a chip holds."""

from __future__ import annotations

import pytest

import openneutron
from benchmarks.board_networks import BOARD_NETWORKS
from benchmarks.networks import Layers
from openneutron.board.sdk import NO_OUTPUT_PADDING, VERSIONS, Rules, rule, rules, table, version_of
from openneutron.machine import targets
from openneutron.options import SDK_VERSIONS


def test_every_rule_names_its_source_and_a_known_version_and_chip() -> None:
    known = {"*", *targets.chips()}
    for one in table():
        assert one.source and one.since in VERSIONS and set(one.chips) <= known, one
        assert one.name in Rules._fields, one


@pytest.mark.parametrize("version", VERSIONS)
def test_every_chip_has_every_rule_in_every_version(version: str) -> None:
    for chip in (*targets.chips(), "a chip without rules"):
        assert rules(chip, version).version == version


def test_a_chip_goes_before_all_chips_and_the_newest_before_older_ones() -> None:
    assert rules("imxrt700", "2.x").tail == rules("mcxn94x", "3.2").tail == ("SOFTMAX", "DEQUANTIZE")
    assert rules("imxrt700", "3.0").tail == ("DEQUANTIZE",)
    assert rules("imxrt700", "3.1").pads_output == NO_OUTPUT_PADDING
    assert rule("pads_output", "mcxn94x", "3.2").since == "3.0"
    with pytest.raises(KeyError):
        rule("no such rule", "imxrt700", "3.0")


def test_rules_that_one_network_shows_can_be_left_out() -> None:
    assert rules("imxrt700", "3.0", without="cifarnet").tail == ("SOFTMAX", "DEQUANTIZE")
    assert rules("imxrt700", "3.0", without="ds_cnn_s").tail == rules("imxrt700", "3.0").tail
    assert rules("mcxn94x", "1.2", without="ds_cnn_s").spread_first is False
    assert {one.only for one in table()} - {""} <= set(BOARD_NETWORKS)


def test_a_converters_version_names_the_rules() -> None:
    named = {
        "1.0.0+0X4e5686ed": "1.0",
        "1.2.0": "1.2",
        "2.1.3": "2.x",
        "3.1.1+0X447b3538": "3.1",
        "9.0.0": VERSIONS[-1],
    }
    assert {one: version_of(one) for one in named} == named


def test_notes_say_which_files_stand_in() -> None:
    assert rules("mcxn94x", "3.0").note("mcxn94x") == ""
    assert "rules of 3.0 stand in" in rules("mcxn94x", "3.2").note("mcxn94x")
    assert "rules of 3.1 stand in" in rules("imxrt2660", "2.x").note("imxrt2660")
    assert not rules("imxrt2660", "2.x").scratch  # the chip is newer than the version: its own oldest rules
    assert "no file that NXP's converter made for imx95 is public" in rules("imx95").note("imx95")


def test_the_report_says_which_version_and_obeys_it() -> None:
    net = Layers((1, 4, 4, 8))
    data = net.finish(net.softmax(net.fully_connected(net.conv(net.input, 8, 1), 8)))
    old, new = (openneutron.compile(data, target="imxrt700", sdk=sdk).report.stock for sdk in ("2.x", "3.0"))
    assert (old.sdk, new.sdk) == ("2.x", "3.0")
    assert (old.operators_converted, new.operators_converted) == (2, 3)
    assert openneutron.compile(data).report.stock.sdk == SDK_VERSIONS[-1]
