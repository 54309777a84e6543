"""Building firmware images with `firmware.mk`, running them under QEMU, and looking inside."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIRMWARE_MK = ROOT / "runtime" / "cortex_m33" / "firmware.mk"
RUNNER_MK = ROOT / "runtime" / "modelrunner" / "modelrunner.mk"
PACKAGES = "gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"
CPU = "cortex-m33"
PORTABLE = "cortex-m33+nodsp"
# QEMU's boards, each with one processor. An image for the M0+ runs on an M3, which has all its instructions, one for the M85 on
# an M55.
BOARDS = {
    "cortex-m0plus": "mps2-an385",
    "cortex-m4": "mps2-an386",
    "cortex-m7": "mps2-an500",
    "cortex-m55": "mps3-an547",
    "cortex-m85": "mps3-an547",
}
# QEMU needs a fraction of a second for any model of the zoo; a minute is a hang.
_SECONDS = 600


@dataclass(frozen=True)
class Run:
    """What an image printed: outputs, and every line that is a keyword and a number."""

    status: int
    text: str

    @property
    def outputs(self) -> list[bytes]:
        return [bytes.fromhex(digits) for digits in re.findall(r"^output \d+ ([0-9a-f]*)$", self.text, re.MULTILINE)]

    def number(self, keyword: str) -> int:
        found = re.search(rf"^{keyword} (\d+)$", self.text, re.MULTILINE)
        assert found, f"the image printed no {keyword!r}:\n{self.text}"
        return int(found.group(1))


def missing_tools() -> list[str]:
    """The programs that are not installed, and the C library."""
    programs = ["arm-none-eabi-gcc", "qemu-system-arm", "make"]
    absent = [program for program in programs if shutil.which(program) is None]
    if "arm-none-eabi-gcc" not in absent:
        found = _output(["arm-none-eabi-gcc", "-print-file-name=nano.specs"]).strip()
        absent += [] if "/" in found else ["nano.specs"]
    return absent


def make(target: str, build: Path, *settings: str, makefile: Path = FIRMWARE_MK) -> None:
    """Run `firmware.mk` or another one; what it printed is shown when it fails."""
    command = ["make", "-s", "-f", str(makefile), target, f"BUILD={build}", *settings]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def build_image(
    build: Path,
    model: Path,
    name: str,
    *,
    selection: Path | None = None,
    cpu: str = CPU,
    stack: int | None = None,
    decode: str = "block",
    lean: bool = False,
    more: Sequence[str] = (),
) -> Path:
    """The image of the folder's model.c; `name` keeps images of one model apart."""
    # Objects depend on the processor, so each has its own folder.
    settings = [f"MODEL={model}", f"NAME={name}", f"CPU={cpu}", f"DECODE={decode}"]
    settings += [*(["LEAN=yes", "CHECKSUM=no"] if lean else []), *more]
    settings += [] if selection is None else [f"SELECTION={selection}"]
    settings += [] if stack is None else [f"STACK_BYTES={stack}"]
    make("image", build / cpu, *settings)
    return model / f"{name}.elf"


def build_runners(build: Path) -> Path:
    """The folder with the images of the model runners, `frames.elf` and `console.elf`; the library's objects are shared."""
    folder = build / CPU
    make("runners", folder, f"CPU={CPU}", makefile=RUNNER_MK)
    return folder


def run_image(image: Path, cpu: str = CPU, options: Sequence[str] = ()) -> Run:
    """Run under QEMU until the image leaves, on the board that firmware.mk links images of the processor for."""
    core = cpu.partition("+")[0]
    machine = ["qemu-system-arm", "-M", BOARDS.get(core, "mps2-an505"), "-nographic", "-semihosting", *options]
    # QEMU writes what the image says to stderr, where its own messages go too.
    done = subprocess.run(
        [*machine, "-kernel", str(image)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_SECONDS,
    )
    return Run(done.returncode, done.stdout.decode())


def symbols(image: Path) -> dict[str, int]:
    """Names in the image with their bytes."""
    rows = re.findall(r"^\w+ (\w+) \w (\S+)$", _output(["arm-none-eabi-nm", "-S", str(image)]), re.MULTILINE)
    plain = re.findall(r"^\w+ \w (\S+)$", _output(["arm-none-eabi-nm", str(image)]), re.MULTILINE)
    return dict.fromkeys(plain, 0) | {name: int(size, 16) for size, name in rows}


def kernels_in(image: Path, known: Sequence[str]) -> set[str]:
    """Which of the known kernels the image holds."""
    present = symbols(image)
    return {kernel for kernel in known if f"nk_{kernel}" in present}


def sections(image: Path) -> dict[str, int]:
    """Bytes of each section that takes memory."""
    rows = re.findall(r"^(\.\S+)\s+(\d+)\s+\d+$", _output(["arm-none-eabi-size", "-A", str(image)]), re.MULTILINE)
    memory = (".text", ".payload", ".data", ".bss", ".stack")
    return {name: int(size) for name, size in rows if name in memory}


def address(image: Path, section: str) -> int:
    """Where a section begins."""
    rows = re.findall(r"^(\.\S+)\s+\d+\s+(\d+)$", _output(["arm-none-eabi-size", "-A", str(image)]), re.MULTILINE)
    return int(dict(rows)[section])


def _output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
