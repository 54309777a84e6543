"""The promises of `benchmarks/firmware_size.py`, on CifarNet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.firmware_size import CIFARNET_SHARE, FULL_TEXT
from openneutron._version import __version__
from openneutron.microcode.selection import selection_code
from tests.firmware import image
from tests.firmware.conftest import Build
from tests.firmware.models import Model


def test_cifarnet_takes_a_small_part_of_a_small_firmware(
    build: Build, zoo_model: Callable[..., Model], tmp_path: Path
) -> None:
    model = zoo_model("cifarnet")
    empty = tmp_path / "none.c"
    empty.write_text(selection_code([], "imxrt700", __version__))
    images = {"all": None, f"selected-{image.CPU}": model.selection, "none": empty}
    full, selected, none = (
        image.sections(build(model, name, selection=selection))[".text"] for name, selection in images.items()
    )
    assert full <= FULL_TEXT
    assert 0 < selected - none <= CIFARNET_SHARE * (full - none)
