"""Model Explorer's own page with our graphs and overlays in a browser."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import openneutron as on
from tests import tiny
from tests.report.html.browser import browser, find


@pytest.mark.full
def test_graphs_and_overlays_are_on_the_page(tmp_path: Path) -> None:
    find()
    program = on.compile(tiny.convnet())
    (tmp_path / "out.tflite").write_bytes(program.tflite)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-u", "-m", "openneutron", "explore", "out.tflite", "--no-browser", "--port", str(port)]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            said: list[str] = []
            for line in process.stdout:
                said.append(line)
                if "Ctrl+C" in line:
                    break
            address = re.search(r"http://127\.0\.0\.1:\d+/\S*", "".join(said))
            assert address is not None, said
            with browser(1400, 900) as window:
                window.visit(address[0])
                seen = "const seen = document.body.innerText; return arguments[0].every((word) => seen.includes(word))"
                total = sum(kernel.cycles for kernel in program.report.kernels)
                window.wait(seen, ["NeutronGraph 0", "imxrt700", "cycles", "output bytes", f"{total}"])
        finally:
            process.terminate()
