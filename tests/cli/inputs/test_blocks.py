"""Microcode in files: a model that is not compiled yet is told from a file that nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from openneutron.cli.inputs.blocks import blocks_of_file
from openneutron.convert import convert
from openneutron.errors import FormatError
from openneutron.options import Options
from tests import tiny

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Refused


def test_a_compiled_model_has_one_block_for_each_graph() -> None:
    assert [one.where for one in blocks_of_file(convert(tiny.convnet(), Options()).model, "c")] == ["c, operator 0"]
    assert blocks_of_file(tiny.convnet(), "m.tflite") == []


def test_what_nobody_knows_says_what_was_tried() -> None:
    with pytest.raises(FormatError, match=r"no \.pte, no \.tflite, no Neutron payload and no microcode"):
        blocks_of_file(b"nonsense" * 20, "file")


@pytest.mark.parametrize("verb", ["profile", "disasm"])
def test_an_onnx_model_is_compiled_first(verb: str, refused: Refused, tmp_path: Path) -> None:
    from tests.onnx.models import convnet

    path = tmp_path / "net.onnx"
    path.write_bytes(convnet().SerializeToString())
    assert "not compiled yet" in refused(verb, path)
