"""Projects: a small model's, made once; and what builds and runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from openneutron.compiler import kernels
from openneutron.project import boards
from openneutron.project.content import Content, make_content
from openneutron.project.open_model import OpenModel, open_model
from tests import tiny
from tests.firmware.image import PACKAGES, missing_tools

# Nothing here takes a minute on a free machine; this is a hang even on a busy one.
_SECONDS = 900


@pytest.fixture(scope="session")
def tools() -> None:
    absent = missing_tools() + ([] if shutil.which("cmake") else ["cmake"])
    if absent:
        message = f"{', '.join(absent)} not found; install the Debian packages {PACKAGES} cmake"
        # Where set-up was asked to install them, a missing tool is an error.
        pytest.fail(message) if os.environ.get("OPENNEUTRON_APT") == "1" else pytest.skip(message)


@pytest.fixture(scope="session")
def small() -> OpenModel:
    """A compiled convolution, pool, linear layer and softmax."""
    import openneutron

    kernels.rules()
    return open_model(openneutron.compile(tiny.convnet(), target="cortex_m33").data, "small.tflite")


@pytest.fixture(scope="session")
def content(small: OpenModel) -> Content:
    return make_content(small, boards.load("mps2-an505"), [], title="small.tflite", command="")


def command(words: list[str], folder: Path, *, fails: bool = False) -> str:
    """What a command printed; it must succeed, or fail."""
    done = subprocess.run(
        words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_SECONDS
    )
    text = done.stdout.decode()
    assert (done.returncode != 0) == fails, text
    return text
