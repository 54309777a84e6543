"""What docs/kernel-selection.md prints of CifarNet's image is what the image prints."""

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
