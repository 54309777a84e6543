"""Generated files are current."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from openneutron.compiler import kernels
from openneutron.compiler.back import generate

ROOT = Path(__file__).resolve().parents[3]
kernels.rules()


@pytest.mark.parametrize("name", sorted(generate.files()))
def test_file_is_what_the_tables_say(name: str) -> None:
    assert (ROOT / name).read_text("utf-8") == generate.files()[name], (
        "run python -m openneutron.compiler.back.generate"
    )


def test_a_kernel_that_is_on_no_list_yet_is_found() -> None:
    script = (
        "from openneutron.compiler import kernels; "
        "kernels.KERNEL_FILES = {}; print(kernels.rule_of('CONV_2D').kernel_file)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "openneutron.compiler.kernels.conv2d"
