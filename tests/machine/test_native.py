"""Where libraries are looked for, and what is said where none can be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from openneutron.errors import OpenNeutronError
from openneutron.machine import native
from tests import tiny

# A Windows as far as Python shows it: its name, and no POSIX modules. What other packages do there is their affair, so they
# are imported before.
WINDOWS = """
import subprocess, sys, sysconfig
import ai_edge_litert.interpreter, click, flatbuffers, jinja2, multiprocessing, numpy, rich.console, tempfile, typer
sysconfig.get_config_vars()
sys.platform = "win32"
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
from openneutron.cli.main import run
for line in sys.argv[1:]:
    print(">", line, run(line.split()), flush=True)
"""


@pytest.fixture
def on_windows(tmp_path: Path):
    def run(*lines: str) -> tuple[str, str]:
        (tmp_path / "model.tflite").write_bytes(tiny.convnet())
        done = subprocess.run(
            [sys.executable, "-c", WINDOWS, *lines], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout, done.stderr

    return run


def test_on_windows_the_python_parts_work_and_the_rest_says_why_not(on_windows) -> None:
    out, err = on_windows("targets", "ops CONV_2D", "inspect model.tflite", "compile model.tflite -o out.tflite")
    codes = [line.split()[-1] for line in out.splitlines() if line.startswith("> ")]
    assert codes == ["0", "0", "0", "2"]
    assert err == (
        "openneutron: OpenNeutron's native runtime is not built for Windows. "
        "Hint: use it in WSL, on Linux or on macOS\n"
    )


def test_a_library_that_is_not_built_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(native, "_FOLDER", tmp_path)
    for find, stem in (
        (native.library_path, ""),
        (native.delegate_path, "_delegate"),
        (native.litert_delegate, "_litert"),
    ):
        with pytest.raises(OpenNeutronError, match=rf"libopenneutron{stem}\.\w+ is not built"):
            find()
    assert native.delegate_built_for() == ""


def test_macos_has_its_own_ending(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "libopenneutron.dylib").touch()
    monkeypatch.setattr(native, "_FOLDER", tmp_path)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert native.library_path().name == "libopenneutron.dylib"
