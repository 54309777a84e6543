"""Names from a file cannot command the terminal they are shown on."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from openneutron.analyze.data.arrays import write_arrays
from openneutron.certify.__main__ import main as prove
from openneutron.cli.main import run
from openneutron.compat import merge_kernel_selection_code
from openneutron.errors import FormatError
from openneutron.executorch.deliver import embed
from openneutron.litert import DType, GraphBuilder, write_model
from openneutron.microcode.instructions import Dma
from openneutron.microcode.selection import Selection, parse, render
from openneutron.microcode.table import Region
from openneutron.terminal.escapes import comment, printable
from openneutron.terminal.quiet import without_native_chatter
from tests.executorch.delegates import payload_of
from tests.hostile import crafted

NAME = "x\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"
BAD = ("\x1b", "\x07", "\x9b", "\u202e")


def hostile(folder: Path) -> Path:
    g = GraphBuilder()
    x, y = (g.tensor(f"{NAME}{side}", (1, 4), DType.INT8, 0.1, 0) for side in "xy")
    g.op("RELU", [x], [y])
    file = folder / "x.tflite"
    file.write_bytes(write_model(g.finish([x], [y])))
    return file


@pytest.mark.parametrize("verb", ["inspect", "compile", "run", "verify"])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_the_terminal_gets_text(
    verb: str, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([verb, str(hostile(tmp_path)), *more]) == 0
    shown = capsys.readouterr()
    assert not any(one in shown.out + shown.err for one in BAD)
    if more:
        json.loads(shown.out)


def test_errors_and_names_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compile", str(tmp_path / f"{NAME}.tflite")]) == 2
    err = capsys.readouterr().err
    assert "\\u001b[2J" in err and not any(one in err for one in BAD)


def test_text_that_commands_nothing_stays() -> None:
    assert printable("µs\tα → 中 é\n") == "µs\tα → 中 é\n"


def test_c_sources() -> None:
    """A payload's target, from the file, ends no comment; a selection with a forged checksum adds no code."""
    assert comment("a */ int x; /*\n#include \x1b\\") == "a * / int x; /* #include \\u001b"
    forged = "x */ int y; /*"
    blocks = crafted.blocks(Dma(0, Region.INPUT, 0, Region.OUTPUT, 0, 0, 16))
    made = embed.embed(payload_of(blocks, [0], [0], target=forged), name="m", header="m.h", where=NAME)
    for text in (made.source, made.header):
        title = text.splitlines()[0]
        assert title.count("*/") == 1 and title.endswith("*/") and "int y" in title
        assert not any(one in text for one in BAD)
    for target, kernels in ((forged, {1: "conv2d"}), ("imxrt700", {1: "conv2d;int/**/evil;"})):
        with pytest.raises(FormatError, match="no name"):
            parse("x.c", render(Selection(kernels, target, "0.1.0")))


def test_scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / f"{NAME}.c")
    assert merge_kernel_selection_code.main(["-output-file", str(tmp_path / "o.c"), "-input-files", missing]) != 0
    assert prove([missing, missing]) == 2
    shown = capsys.readouterr()
    assert "\\u001b" in shown.err and not any(one in shown.out + shown.err for one in BAD)


def test_what_native_libraries_say(capfd: pytest.CaptureFixture[str]) -> None:
    with without_native_chatter():
        os.write(2, f"INFO: hidden\nERROR: {NAME}\n".encode())
    err = capfd.readouterr().err
    assert "hidden" not in err and "\\u001b" in err and not any(one in err for one in BAD)


def test_names_in_archives(tmp_path: Path) -> None:
    write_arrays(tmp_path / "y.npz", {"/../a/../b": np.ones(1), f"c/{NAME}": np.ones(1)})
    with zipfile.ZipFile(tmp_path / "y.npz") as archive:
        names = archive.namelist()
    assert names[0] == "_/a/_/b.npy" and not any(one in names[1] for one in BAD)
