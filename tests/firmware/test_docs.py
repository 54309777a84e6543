"""What docs/kernel-selection.md shows of CifarNet's image and its selection is what they print and hold."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.firmware import image
from tests.firmware.conftest import Build
from tests.firmware.models import Model

PAGE = image.ROOT / "docs" / "kernel-selection.md"


def test_the_page_prints_what_the_image_prints(tools: None, build: Build, zoo_model: Callable[..., Model]) -> None:
    model = zoo_model("cifarnet")
    ran = image.run_image(build(model, f"selected-{image.CPU}", selection=model.selection))
    shown = dict(re.findall(r"^(calls|cycles|arena|context) (\d+)$", PAGE.read_text(), re.MULTILINE))
    assert {name: int(value) for name, value in shown.items()} == {
        name: ran.number(name) for name in ("calls", "cycles", "arena", "context")
    }


def test_the_page_shows_the_selection_that_is_written(zoo_model: Callable[..., Model]) -> None:
    (kernels,) = re.findall(r"^ \* kernels: .*$", PAGE.read_text(), re.MULTILINE)
    selection = zoo_model("cifarnet").selection.read_text()
    assert kernels in selection.splitlines()
    (missing,) = re.findall(r"kernel (\d+) \((\w+)\)$", PAGE.read_text(), re.MULTILINE)
    assert f"{missing[1]}={missing[0]}" in kernels
