from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import runtime, without_avx512
from openneutron.errors import OptionError, RuntimeFailure

ROOT = Path(__file__).parents[2]
here = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="replaces instructions of x86-64 on Linux"
)

# Two libraries that ask the processor as XNNPACK does: the features of leaf 7, sub-leaf `part`.
ASKING = """
#include <cpuid.h>
void ask(unsigned part, unsigned *a) { __cpuid_count(7, part, a[0], a[1], a[2], a[3]); }
"""
SILENT = "int nothing(void) { return 0; }"
WATCH = """
import ctypes, sys
from pathlib import Path
from benchmarks import without_avx512 as w

def ask(library, part):
    found = (ctypes.c_uint * 4)()
    library.ask(part, found)
    return list(found)

def protections():
    return [one[:3] for one in w.mappings() if one[3] in files]

files = [Path(name) for name in sys.argv[1:]]
libraries = [ctypes.CDLL(name) for name in sys.argv[1:]]
before, kept = [ask(one, part) for one in libraries for part in (0, 1)], protections()
helper = w.hold(files)
assert helper.questions() == 0 and protections() == kept
after = [ask(one, part) for one in libraries for part in (0, 1)]
assert helper.questions() == len(libraries)
avx512f, avx2, avx_vnni = 1 << 16, 1 << 5, 1 << 4
for old, new, part in zip(before, after, (0, 1) * len(libraries), strict=True):
    assert all(new[i] & ~old[i] == 0 for i in range(4)), "a bit that the processor does not have"
    if part == 0:
        assert not new[1] & avx512f and new[1] & avx2 == old[1] & avx2
    else:
        assert not new[0] & avx_vnni
"""


def library(path: Path, source: str) -> Path:
    path.with_suffix(".c").write_text(source, "utf-8")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", path, path.with_suffix(".c")], check=True)
    return path


@here
def test_libraries_that_ask_are_told_of_no_avx512_and_their_pages_keep_their_protection(tmp_path: Path) -> None:
    names = [library(tmp_path / name, ASKING) for name in ("one.so", "two.so")]
    done = subprocess.run([sys.executable, "-c", WATCH, *names], cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


@here
def test_an_illegal_instruction_of_others_still_ends_the_process(tmp_path: Path) -> None:
    asking = library(tmp_path / "one.so", ASKING + "void fail(void) { __builtin_trap(); }")
    script = "import sys, ctypes; from pathlib import Path; from benchmarks import without_avx512 as w; "
    script += "lib = ctypes.CDLL(sys.argv[1]); w.hold([Path(sys.argv[1])]); lib.fail()"
    done = subprocess.run([sys.executable, "-c", script, asking], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == -4  # SIGILL


@here
def test_a_library_without_the_instruction_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = library(tmp_path / "silent.so", SILENT)
    ctypes.CDLL(str(silent))
    with pytest.raises(RuntimeFailure, match=r"no CPUID instruction was found in its libraries \(silent.so\)"):
        without_avx512.hold([silent])
    with pytest.raises(RuntimeFailure, match="none is loaded"):
        without_avx512.hold([])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OptionError, match="without objdump"):
        without_avx512.hold([silent])
    with pytest.raises(OptionError, match="without a C compiler"):
        without_avx512.compiled()


def test_another_platform_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(OptionError, match=r"aarch64\. Hint: that needs Linux on x86-64"):
        without_avx512.hold_to_avx2()


def test_what_was_not_held_back_is_no_comparison() -> None:
    held = [Path("a.so")]
    without_avx512.confirm(1, held, held)
    with pytest.raises(RuntimeFailure, match="without asking what the processor has"):
        without_avx512.confirm(0, held, held)
    with pytest.raises(RuntimeFailure, match=r"it loaded b.so later"):
        without_avx512.confirm(1, held, [*held, Path("b.so")])


def test_litert_is_held_where_ours_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENNEUTRON_ISA", raising=False)
    assert not runtime.litert_is_held("", "avx2")  # a processor without AVX-512: LiteRT takes what it finds there
    assert runtime.litert_is_held("avx2", "avx512vnni")
    monkeypatch.setenv("OPENNEUTRON_ISA", "avx2")
    assert runtime.litert_is_held("", "avx2")
    assert not runtime.litert_is_held("best", "avx2")
    assert not runtime.litert_is_held("", "neon")  # the set that was named is not there


@here
@pytest.mark.full
def test_xnnpack_itself_is_held() -> None:
    script = "from benchmarks.without_avx512 import hold_to_avx2; hold_to_avx2()"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
