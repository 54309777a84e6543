"""Instructions of the kernels' loops on 64-bit Arm, against portable C and XNNPACK, counted under qemu-aarch64.

    python benchmarks/aarch64.py                    our loops against portable C
    python benchmarks/aarch64.py --xnnpack FOLDER   XNNPACK too: FOLDER holds Debian's arm64 packages libxnnpack0,
                                                    libxnnpack-dev, libpthreadpool0, libpthreadpool-dev, libcpuinfo0

Counts, not seconds: an emulator has no clock that means anything. One call is the difference between runs of two calls and of
one, so start-up does not count. XNNPACK picks its kernels by the processor QEMU shows: Cortex-A53 for NEON, "max" for the
rest. Its add rounds once where TFLite's reference, which we follow bit for bit, rounds three times.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "aarch64-counts"
SOURCES = Path(__file__).parent / "aarch64"
SYSROOT = "/usr/aarch64-linux-gnu"
SETS = ("neon", "dotprod", "i8mm")
# kernel, height, width, inputs, outputs, window, stride
LAYERS = (
    ("conv2d", 14, 14, 64, 64, 1, 1),
    ("conv2d", 14, 14, 32, 32, 3, 1),
    ("conv2d", 28, 28, 3, 16, 3, 1),
    ("depthwise_conv2d", 28, 28, 64, 64, 3, 1),
    ("depthwise_conv2d", 28, 28, 64, 64, 3, 2),
    ("fully_connected", 1, 1, 512, 128, 1, 1),
    ("add", 14, 14, 64, 64, 1, 1),
    ("max_pool2d", 28, 28, 64, 64, 2, 2),
    ("avg_pool2d", 28, 28, 64, 64, 2, 2),
    ("lut", 28, 28, 64, 64, 1, 1),
    ("conv2d16", 14, 14, 64, 64, 1, 1),
    ("conv2d16", 14, 14, 32, 32, 3, 1),
    ("conv2d16", 28, 28, 3, 16, 3, 1),
    ("depthwise_conv2d16", 28, 28, 64, 64, 3, 1),
    ("fully_connected16", 1, 1, 512, 128, 1, 1),
    ("add16", 14, 14, 64, 64, 1, 1),
    ("max_pool2d16", 28, 28, 64, 64, 2, 2),
    ("avg_pool2d16", 28, 28, 64, 64, 2, 2),
    ("requantize16", 28, 28, 64, 64, 1, 1),
)
DENSE = {"conv2d", "fully_connected"}  # what dotprod and i8mm have loops of their own for
PEERLESS = {"avg_pool2d", "lut"}  # rounds otherwise there, or does not exist, as anything of 16 bits does not


def main() -> None:
    """Print a table."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--xnnpack", type=Path, help="folder with Debian's arm64 packages")
    chosen = arguments.parse_args()
    ours = build_ours()
    peer = build_peer(chosen.xnnpack) if chosen.xnnpack else None
    print(f"{'layer':34} {'set':8} {'instructions':>12} {'portable /':>11} {'/ XNNPACK':>10}")
    for kernel, *shape in LAYERS:
        words = [kernel, *map(str, shape)]
        portable = count(ours, words, isa="portable")
        for name in SETS if kernel in DENSE else SETS[:1]:
            found = count(ours, words, isa=name)
            against = ""
            if peer and kernel not in PEERLESS and not kernel.endswith("16"):
                against = f"{found / count(peer, words, cpu='cortex-a53' if name == 'neon' else 'max'):.2f}"
            label = f"{kernel} {shape[0]}x{shape[1]}x{shape[2]}->{shape[3]} {shape[4]}x{shape[4]}/{shape[5]}"
            print(f"{label:34} {name:8} {found:12,} {portable / found:11.1f} {against:>10}")


def run(*command: str | Path) -> None:
    """Run a build command; on failure show its output."""
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"`{' '.join(map(str, command))}` failed:\n{done.stdout}{done.stderr}")


def build_ours() -> list[str]:
    """Build the runtime's objects for 64-bit Arm, a program that calls one kernel, and the instruction counter."""
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake' / 'aarch64-linux-gnu.cmake'}"
    run("cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", toolchain, "-DOPENNEUTRON_EXECUTORCH=OFF", "-DSKBUILD=ON")
    run("cmake", "--build", BUILD, "--target", "openneutron_core")
    objects = sorted((BUILD / "runtime" / "CMakeFiles" / "openneutron_core.dir").rglob("*.o"))
    folders = [f"-I{ROOT / 'runtime' / name}" for name in ("include", "firmware", "firmware/driver", "host/simd")]
    program = BUILD / "ours"
    run("aarch64-linux-gnu-gcc", "-O2", "-o", program, SOURCES / "ours.c", *folders, *objects, "-lm", "-lpthread")
    run("gcc", "-shared", "-fPIC", "-O2", "-o", BUILD / "count.so", SOURCES / "count.c")
    return [str(program)]


def build_peer(packages: Path) -> list[str]:
    """Build the same layers with XNNPACK's operators, from Debian's packages."""
    root = BUILD / "xnnpack"
    for package in sorted(packages.glob("*.deb")):
        run("dpkg-deb", "-x", package, root)
    library = root / "usr" / "lib" / "aarch64-linux-gnu"
    program = BUILD / "peer"
    run(
        "aarch64-linux-gnu-gcc",
        "-O2",
        "-o",
        program,
        SOURCES / "xnnpack.c",
        f"-I{root / 'usr' / 'include'}",
        f"-L{library}",
        "-lXNNPACK",
        "-Wl,--unresolved-symbols=ignore-in-shared-libs",
    )
    return ["-E", f"LD_LIBRARY_PATH={library}", str(program)]


def count(program: list[str], words: list[str], *, isa: str = "", cpu: str = "max") -> int:
    """Return the instructions of one call."""
    once, twice = (executed([*program, *words, times], isa, cpu) for times in ("1", "2"))
    return twice - once


def executed(command: list[str], isa: str, cpu: str) -> int:
    """Return the instructions of a program, from start to exit."""
    emulator = ["qemu-aarch64", "-L", SYSROOT, "-cpu", cpu, "-plugin", str(BUILD / "count.so"), "-d", "plugin"]
    environment = {**os.environ, **({"OPENNEUTRON_ISA": isa} if isa else {})}
    done = subprocess.run([*emulator, *command], env=environment, capture_output=True, text=True, check=False)
    found = [line.split()[1] for line in done.stderr.splitlines() if line.startswith("instructions ")]
    if done.returncode or not found:
        sys.exit(f"`{' '.join(command)}` ended with {done.returncode}: {done.stderr}")
    return int(found[-1])


if __name__ == "__main__":
    main()
