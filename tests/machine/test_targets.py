from __future__ import annotations

from pathlib import Path

import pytest

from openneutron.errors import OptionError
from openneutron.machine import targets


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mcxn94x", "mcxn94x"),
        ("MCXN94X", "mcxn94x"),
        ("mcxn947", "mcxn94x"),
        ("FRDM-MCXN947", "mcxn94x"),
        ("rt700", "imxrt700"),
        ("i.MX RT700", "imxrt700"),
        ("MIMXRT798S", "imxrt700"),
        ("MIMXRT700-EVK", "imxrt700"),
        ("IMX95", "imx95"),
        ("i.MX 952", "imx952"),
        ("MCXN54X", "mcxn54x"),
        ("esp32", "esp32"),
    ],
)
def test_part_numbers_and_boards_name_their_target(text: str, name: str) -> None:
    assert targets.canonical_name(text) == name


def test_an_unknown_target_is_refused_with_the_nearest() -> None:
    with pytest.raises(OptionError, match=r"unknown target 'imxrt70'.*did you mean 'imxrt700'"):
        targets.load("imxrt70")
    with pytest.raises(OptionError, match=r"unknown target 'esp32'\. Hint: known targets"):
        targets.load("esp32")


def test_memory_is_called_what_it_is() -> None:
    assert [targets.load(name).ram for name in ("imx95", "imxrt700", "mcxn94x")] == ["DDR", "SRAM", "SRAM"]


@pytest.mark.parametrize("name", targets.names())
def test_decoding_is_no_slower_than_loading(name: str) -> None:
    """Or coded weights could make a model slower."""
    cost = targets.load(name).cost
    assert 0 < cost.decode_byte <= min(cost.weight_byte, cost.dma_byte)


def test_a_file_that_is_new_or_has_changed_is_read_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (Path(targets.FOLDER) / "imxrt700.toml").read_text()
    (tmp_path / "imxrt700.toml").write_text(text.replace("clock_hz = 324_000_000", "clock_hz = 200_000_000"))
    (tmp_path / "mine.toml").write_text(text.replace('name = "imxrt700"', 'name = "mine"'))
    monkeypatch.setattr(targets, "FOLDER", str(tmp_path))
    asked = (targets.names, targets.load, targets._table, targets.canonical_name)
    for one in asked:
        one.cache_clear()
    try:
        assert targets.names() == ("imxrt700", "mine")
        assert targets.load("imxrt700").clock_hz == 200_000_000
        assert targets.load("mine").clock_hz == 324_000_000
    finally:
        for one in asked:
            one.cache_clear()


@pytest.mark.parametrize("names", [("cortex_m33", "cortex_m4", "cortex_m7"), ("cortex_m55", "cortex_m85")])
def test_costs_of_processors_with_the_same_loops_are_the_same_instructions(names: tuple[str, ...]) -> None:
    processors = [targets.load(name) for name in names]
    for name in ("mac", "lane", "row", "element", "call", "output"):
        counts = [getattr(one.cost, name) / one.cycles_per_instruction / 1024 for one in processors]
        assert counts == pytest.approx([counts[0]] * len(counts), abs=0.01), name


def test_every_processor_has_one_of_the_two_sets_of_loops() -> None:
    known = {"cortex_m33", "cortex_m4", "cortex_m7", "cortex_m55", "cortex_m85"}
    assert {name for name in targets.names() if targets.is_processor(name)} == known


def test_sweeps_over_geometries_leave_nothing_out() -> None:
    def geometry(name: str) -> tuple[object, ...]:
        one = targets.load(name)
        return one.processor, one.subsystem, one.cores, one.units, one.length, bool(one.tcm_bytes)

    assert {*map(geometry, targets.names())} == {*map(geometry, targets.geometries())}
