"""Fuzz everything that reads bytes from outside, for a given time in all; `make fuzz` calls this.

The files fuzz_* beside this one are programs for libFuzzer, built with clang under the address and undefined-behaviour
sanitizers; fuzz.py damages whole LiteRT models, fuzz_onnx.py ONNX ones. Seeds are compiled on the spot; what earlier runs
learnt stays in build/fuzz/corpus, what they found in build/fuzz/findings.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COMPILER = HERE / "fuzz.py"
READER = HERE / "fuzz_onnx.py"
BUILD = ROOT / "build" / "fuzz"
PACKAGES = "clang and libclang-rt-dev"
SEEDS = {"fuzz_microcode": "microcode", "fuzz_payload": "payload", "fuzz_delegate": "payload"}
# Sizes from damaged headers: a refused allocation is an answer that the code must cope with.
ASAN = "allocator_may_return_null=1:max_allocation_size_mb=64"
# Inputs: the largest seed has 10 kB. A try that takes 120 s is a hang, on however busy a machine: typical ones take a
# millisecond.
LIMITS = ("-max_len=16384", "-timeout=120", "-rss_limit_mb=4096", "-malloc_limit_mb=8192")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="for all targets together (600)")
    parser.add_argument("--only", default="", help="one target, such as fuzz_microcode; `fuzz` is the compiler's")
    parser.add_argument("--seed", type=int, default=0, help="of the compiler's fuzzer (0)")
    parser.add_argument("--models", default="", help="a folder of .tflite files to damage as well")
    options = parser.parse_args()
    names = [
        path.stem for path in [*sorted(HERE.glob("fuzz*.c*")), COMPILER, READER] if options.only in ("", path.stem)
    ]
    scripts = [path for path in (COMPILER, READER) if path.stem in names]
    native = [name for name in names if name not in {path.stem for path in scripts}]
    if not names:
        parser.error(f"there is no target {options.only}")
    if native and not _has_libfuzzer():
        print(f"fuzz: {', '.join(native)} skipped: clang's libFuzzer is missing; install Debian's {PACKAGES}")
        native = []
    programs = _built(native) if native else {}
    each = max(options.seconds // max(len(programs) + len(scripts), 1), 1)
    failed = [name for name, program in programs.items() if not _fuzz(name, program, each)]
    if COMPILER.stem in names and not _fuzz_compiler(each, options.seed, options.models):
        failed.append(COMPILER.stem)
    if READER.stem in names and not _fuzz_reader(each, options.seed):
        failed.append(READER.stem)
    print(f"fuzz: {'found something in ' + ', '.join(failed) if failed else 'nothing found'}")
    return int(bool(failed))


def _has_libfuzzer() -> bool:
    if shutil.which("clang") is None or shutil.which("clang++") is None:
        return False
    source = "int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size) { return size && !data; }"
    command = ["clang", "-x", "c", "-fsanitize=fuzzer,address", "-o", os.devnull, "-"]
    return subprocess.run(command, input=source, text=True, capture_output=True).returncode == 0


def _tool(name: str) -> str:
    """A program beside the interpreter, or on the path."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else name


def _built(names: list[str]) -> dict[str, Path]:
    """Build the targets and write their seeds; those that need the executorch wheel are left out without it."""
    wheel = find_spec("executorch")
    folder = next(iter(wheel.submodule_search_locations or [])) if wheel else ""
    options = {
        "CMAKE_BUILD_TYPE": "Debug", "CMAKE_C_COMPILER": "clang", "CMAKE_CXX_COMPILER": "clang++",
        "CMAKE_MAKE_PROGRAM": shutil.which(_tool("ninja")), "OPENNEUTRON_SANITIZE": "ON", "OPENNEUTRON_FUZZ": "ON",
        "OPENNEUTRON_EXECUTORCH": folder,
    }  # fmt: skip
    defined = [f"-D{key}={value}" for key, value in options.items()]
    _quietly([_tool("cmake"), "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", *defined])
    _quietly([_tool("cmake"), "--build", str(BUILD)])
    sys.path.insert(0, str(ROOT))
    from tests.fuzz.payloads import write_seeds

    write_seeds(BUILD / "seeds")
    programs = {name: BUILD / "tests" / "fuzz" / name for name in names}
    missing = [name for name, program in programs.items() if not program.exists()]
    if missing:
        print(f"fuzz: {', '.join(missing)} skipped: they hold the delegate, which needs the executorch wheel")
    return {name: program for name, program in programs.items() if name not in missing}


def _quietly(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")


def _fuzz(name: str, program: Path, seconds: int) -> bool:
    """Run one libFuzzer program; print one line. False when it found something."""
    corpus, findings = BUILD / "corpus" / name, BUILD / "findings"
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    command = [str(program), f"-max_total_time={seconds}", *LIMITS, "-print_final_stats=1",
               f"-artifact_prefix={findings}/{name}-", str(corpus), str(BUILD / "seeds" / SEEDS[name])]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", env=os.environ | {"ASAN_OPTIONS": ASAN}
    )
    log = done.stderr.splitlines()
    tries = next((line.split()[-1] for line in log if line.startswith("stat::number_of_executed_units")), "0")
    covered = next((line.split("cov: ")[1].split()[0] for line in reversed(log) if "cov: " in line), "0")
    print(
        f"fuzz: {name}: {tries} inputs in {seconds} s, {covered} edges covered, {'ok' if not done.returncode else 'FAILED'}"
    )
    if done.returncode:
        print("\n".join(log[-40:]))
        print(f"again: ASAN_OPTIONS={ASAN} {program} FILE, with the file named above")
    return done.returncode == 0


def _fuzz_compiler(seconds: int, seed: int, models: str) -> bool:
    arguments = ["--seconds", str(seconds), "--seed", str(seed), "--models", models]
    return subprocess.run([sys.executable, str(COMPILER), *arguments]).returncode == 0


def _fuzz_reader(seconds: int, seed: int) -> bool:
    return subprocess.run([sys.executable, str(READER), "--seconds", str(seconds), "--seed", str(seed)]).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
