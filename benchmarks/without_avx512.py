"""Limit LiteRT to AVX2 in this process, so that a benchmark of our AVX2 loops is fair.

XNNPACK uses the best instructions of the processor, and has no setting to limit them. So every CPUID instruction of LiteRT's
loaded libraries is replaced in memory and answered without AVX-512, AVX-VNNI and AMX (without_avx512.c).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import ai_edge_litert

from openneutron.errors import OptionError, RuntimeFailure

SOURCE = Path(__file__).with_suffix(".c")
INSTRUCTION = re.compile(r"\s*([0-9a-f]+):\s+cpuid\b")  # a line of objdump
REFUSED = "LiteRT cannot be held to AVX2"

_kept: list[object] = []  # addresses that the signal handler reads for as long as the process lives


def hold_to_avx2() -> None:
    """Limit LiteRT's interpreters, including XNNPACK, to AVX2. Call it before the first one is made.

    Raises if that is not possible, or has no effect because LiteRT has examined the processor already.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise OptionError(f"{REFUSED} on {sys.platform} {platform.machine()}", hint="that needs Linux on x86-64")
    from benchmarks import contestants as c
    from benchmarks.networks import chain

    libraries = loaded()
    helper = hold(libraries)
    model = c.Model("one convolution", chain(1))
    c.through_litert(model, c.random_inputs(model), c.PEERS["XNNPACK"])()
    confirm(helper.questions(), libraries, loaded())


def confirm(questions: int, held: list[Path], now: list[Path]) -> None:
    """Raise unless LiteRT, having run a model, queried the processor's features, and only through the replaced instructions."""
    if not questions:
        raise RuntimeFailure(
            f"{REFUSED}: it ran a model without asking what the processor has",
            hint="hold it before the process makes its first interpreter; later it does not ask again",
        )
    if late := [library.name for library in now if library not in held]:
        raise RuntimeFailure(f"{REFUSED}: it loaded {', '.join(late)} later, which asks the processor itself")


def loaded() -> list[Path]:
    """Return LiteRT's libraries in this process."""
    folder = Path(str(ai_edge_litert.__file__)).resolve().parent
    return sorted({file for *_, file in mappings() if file.is_relative_to(folder)})


def hold(libraries: list[Path]) -> ctypes.CDLL:
    """Replace all CPUID instructions of loaded libraries; its `questions()` returns the number of queries since then."""
    addresses = [address for library in libraries for address in instructions(library)]
    if not addresses:
        names = ", ".join(library.name for library in libraries)
        raise RuntimeFailure(
            f"{REFUSED}: no CPUID instruction was found in its libraries ({names or 'none is loaded'})"
        )
    helper = compiled()
    held = (ctypes.c_size_t * len(addresses))(*addresses)
    _kept.append(held)
    if error := helper.hold(held, len(held)):
        why = "it is not what the files hold, or held already" if error == errno.EINVAL else os.strerror(error)
        raise RuntimeFailure(f"{REFUSED}: its code in memory cannot be changed: {why}")
    return helper


def mappings() -> list[tuple[int, int, str, Path]]:
    """Return start, end, protection and file of every file in this process's memory."""
    found = []
    for line in Path("/proc/self/maps").read_text("utf-8").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].startswith("/"):
            start, end = (int(number, 16) for number in fields[0].split("-"))
            found.append((start, end, fields[1], Path(fields[5])))
    return found


def instructions(library: Path) -> list[int]:
    """Return the addresses of a library's CPUID instructions, by a disassembler, because other bytes can look alike."""
    words = ["objdump", "--disassemble", "--no-show-raw-insn", str(library)]
    try:
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            offsets = [int(match[1], 16) for line in process.stdout if (match := INSTRUCTION.match(line))]
    except FileNotFoundError:
        raise OptionError(f"{REFUSED} without objdump", hint="install binutils (apt install binutils)") from None
    if process.returncode:
        raise RuntimeFailure(f"{REFUSED}: `{' '.join(words)}` ended with {process.returncode}")
    mine = [mapping for mapping in mappings() if mapping[3] == library]
    base = min(start for start, *_ in mine)  # shared libraries are linked for address 0
    code = [(start, end) for start, end, protection, _ in mine if protection.startswith("r-x")]
    addresses = [base + offset for offset in offsets]
    if not all(any(start <= address < end for start, end in code) for address in addresses):
        raise RuntimeFailure(f"{REFUSED}: {library.name} does not lie in memory as its file says")
    return addresses


def compiled() -> ctypes.CDLL:
    """Return the helper in C, compiled with the system's compiler; after loading it needs no file."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "without_avx512.so"
        words = ["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", str(made), str(SOURCE)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise OptionError(f"{REFUSED} without a C compiler", hint="install one (apt install gcc)") from None
        if done.returncode:
            raise RuntimeFailure(f"{REFUSED}: `{' '.join(words)}` failed: {done.stderr.strip()}")
        helper = ctypes.CDLL(str(made))
    helper.hold.argtypes = (ctypes.POINTER(ctypes.c_size_t), ctypes.c_size_t)
    return helper
