"""The C sources in the eyes of clang, which macOS builds them with: GCC takes more than the standard and Arm's header say."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "runtime"
HEADERS = Path("/usr/aarch64-linux-gnu/include")
INCLUDES = ("include", "firmware", "firmware/driver", "firmware/machine", "host/driver", "host/simd")


def test_sources_are_plain_c11_for_64_bit_arm() -> None:
    clang = shutil.which("clang")
    if clang is None or not HEADERS.is_dir():
        pytest.skip("needs the Debian packages clang and g++-aarch64-linux-gnu")
    sources = [path for folder in ("firmware", "host") for path in sorted((RUNTIME / folder).rglob("*.c"))]
    assert any(path.name.endswith("_neon.c") for path in sources)
    strict = ["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", '-DOPENNEUTRON_VERSION="0"']
    target = ["--target=aarch64-linux-gnu", "-march=armv8.2-a+dotprod+i8mm", "-isystem", str(HEADERS)]
    include = [f"-I{RUNTIME / folder}" for folder in INCLUDES]
    done = subprocess.run([clang, *target, *strict, *include, *sources], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
