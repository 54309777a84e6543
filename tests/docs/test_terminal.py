"""The recorder of terminal sessions: real commands in, one SVG out that loads nothing."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET

import pytest
from rich.text import Text

from tests.docs.blocks import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import terminal


def test_a_session_is_drawn_with_its_colours() -> None:
    made = terminal.record(("openneutron targets",))
    text = "".join(ET.fromstring(made).itertext()).replace("\xa0", " ")
    assert "$ openneutron targets" in text and "imxrt700" in text
    assert "url(http" not in made and "@font-face" not in made and "href" not in made
    assert made.count("fill: #") > 2


def test_the_seconds_of_a_compile_are_left_out() -> None:
    panel = Text("╭─ x\n│ files    a\n│ seconds  b 1\n│          c 2\n╰──\nAfter")
    assert terminal.without_seconds(panel).plain == "╭─ x\n│ files    a\n╰──\nAfter"


def test_a_command_that_fails_is_not_recorded() -> None:
    with pytest.raises(SystemExit, match="exit code 2"):
        terminal.record(("openneutron inspect gone.pte",))


def test_the_picture_shows_the_commands_of_the_script() -> None:
    text = "".join(ET.parse(ROOT / "docs" / "images" / "terminal.svg").getroot().itertext()).replace("\xa0", " ")
    assert all(command in text for command in terminal.COMMANDS)
