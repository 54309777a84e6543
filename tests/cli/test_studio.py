"""`openneutron studio` as a process: it prints its address, answers there, and Ctrl-C ends it with nothing left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from openneutron.cli.studio import open_studio
from tests import tiny
from tests.studio.conftest import ask

EXAMPLES = re.findall(r"openneutron (studio.*)", open_studio.__doc__ or "")


@pytest.mark.parametrize("line", [*EXAMPLES, "studio model.tflite cifarnet --json --no-browser"])
def test_it_serves_until_ctrl_c(line: str, tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(tiny.convnet())
    # No browser of this machine: the command says so and goes on.
    environment = {**os.environ, "BROWSER": "/bin/false", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "openneutron", *line.split()]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline().decode().strip()
        address = json.loads(said)["address"] if "--json" in line else said
        body = b'{"method": "models", "params": {}}'
        names = [one["name"] for one in json.loads(ask(f"{address}call", body)[1])["result"]]
        assert names == [word for word in ("model.tflite", "cifarnet") if word in line]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["model.tflite"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("none.tflite",), "no such file"),
        (("model.h5",), "are not taken"),
        (("--limits", "memory"), "no limit 'memory'"),
    ],
)
def test_refusals(command, words: tuple[str, ...], message: str) -> None:
    outcome = command("studio", "--no-browser", *words)
    assert outcome.code == 2 and message in outcome.err
