"""Boards by their many names, and their figures where those have another home too."""

from __future__ import annotations

import re

import pytest

from openneutron.errors import OptionError
from openneutron.machine import targets
from openneutron.project import boards
from tests.firmware.image import FIRMWARE_MK


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("cortex-m33", "mps2-an505"),
        ("Cortex_M7", "mps2-an500"),
        ("m55", "mps3-an547"),
        ("frdm_mcxn947/mcxn947/cpu0", "frdmmcxn947"),
        ("FRDM-MCXN947", "frdmmcxn947"),
        ("mcx_n9xx_evk/mcxn947/cpu0", "mcxn9xxevk"),
        ("MIMXRT700-EVK", "mimxrt700evk"),
        ("frdm_imxrt700", "frdmimxrt700"),
        ("mimxrt2660_evk/mimxrt2663/cm85", "mimxrt2660evk"),
    ],
)
def test_a_board_has_many_names(text: str, name: str) -> None:
    assert boards.load(text).name == name


@pytest.mark.parametrize("text", ["", "arduino", "mps2", "*", "mcx*"])
def test_an_unknown_board_is_answered_with_the_known_ones(text: str) -> None:
    with pytest.raises(OptionError, match=r"known boards: mps2-an505, .*frdmmcxn947"):
        boards.load(text)


def test_a_near_miss_is_named() -> None:
    with pytest.raises(OptionError, match="did you mean 'frdmmcxn947'"):
        boards.load("frdmmcxm947")


def test_every_name_leads_to_its_own_board() -> None:
    for name in boards.names():
        board = boards.load(name)
        assert board.name == name
        assert boards.emulator(board.core).machine.startswith("mps")
        for other in (board.zephyr, board.mcuxpresso):
            assert not other or boards.load(other).name == name


def test_memory_of_the_emulators_is_that_of_the_firmware_makefile() -> None:
    text = FIRMWARE_MK.read_text()
    found = dict(re.findall(r"^memory_(cortex-m\d+) := (0x.*)$", text, re.MULTILINE))
    found["cortex-m33"] = re.search(r"\),(0x\d+ .*)\)$", text, re.MULTILINE)[1]  # type: ignore[index]
    found["cortex-m7"] = found["cortex-m4"] = "0x0 4M 0x20000000 2M"
    units = {"K": 1 << 10, "M": 1 << 20}
    for core, words in found.items():
        flash, flash_size, ram, ram_size = words.split()
        made = boards.emulator(core)
        assert (made.flash.origin, made.ram.origin) == (int(flash, 16), int(ram, 16))
        sizes = [int(size[:-1]) * units[size[-1]] for size in (flash_size, ram_size)]
        assert [made.flash.bytes, made.ram.bytes] == sizes


def test_chips_have_the_memory_that_their_boards_name() -> None:
    """A board's regions are parts of its chip's memory."""
    known = [board for board in map(boards.load, boards.names()) if board.chip in targets.names()]
    assert {board.chip for board in known} >= {"imxrt700", "mcxn94x"}
    for board in known:
        chip = targets.load(board.chip)
        assert board.ram.bytes <= chip.sram_bytes
        assert board.flash.bytes <= chip.flash_bytes
