"""Make .venv in the project's root and build the native libraries; doing it again takes seconds.

Three steps, each with its own reason to run again: the packages when requirements/ changed, the editable install and the
bytecode when pyproject.toml changed too, the native build always, because ninja knows best what is out of date.
Needs nothing but Python's standard library.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "openneutron-setup.json"
BUILD = ROOT / "build" / "native"
REQUIREMENTS = ROOT / "requirements"
# Python: tomllib and the pinned wheels. CMake: the LINK_LIBRARY expression arrived in 3.24, Debian 12 has 3.25.
OLDEST_PYTHON = (3, 11)
OLDEST_CMAKE = (3, 25)
# What only some tests need: Debian package → a program of it.
TEST_TOOLS = {
    "gcc-arm-none-eabi": "arm-none-eabi-gcc", "qemu-system-arm": "qemu-system-arm",
    "chromium": "chromium", "chromium-driver": "chromedriver", "npm": "npm",
    "g++-aarch64-linux-gnu": "aarch64-linux-gnu-g++", "qemu-user": "qemu-aarch64",
}  # fmt: skip


# What commands and tests import that takes long to compile.
IMPORTED = (
    "openneutron.cli.app", "openneutron.executorch.pipeline", "openneutron.executorch.recipes", "openneutron.onnx",
    "ai_edge_litert.interpreter", "distributed", "hypothesis", "onnx.backend.test", "onnxruntime", "pandas",
)  # fmt: skip


class SetupError(Exception):
    """A sentence for the user: what is missing or failed, and what to do."""


def main() -> int:
    """Set up the checkout; return the exit status."""
    start = time.monotonic()
    (ROOT / "build").mkdir(exist_ok=True)
    try:
        with (ROOT / "build" / "setup.lock").open("w") as lock:
            # Two `make` at once must not install into the same environment.
            fcntl.flock(lock, fcntl.LOCK_EX)
            check_machine()
            install_test_tools()
            set_up()
            fetch_archives()
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    say(f"ready in {time.monotonic() - start:.1f} s")
    return 0


def set_up() -> None:
    """Bring environment, editable install and native libraries up to date."""
    packages = digest([*REQUIREMENTS.glob("*.txt")], str(ROOT), sys.version)
    install = digest([ROOT / "pyproject.toml", *cmake_files()], packages)
    native = digest(cmake_files(), str(ROOT))
    done = read_stamp()
    if done.get("packages") != packages:
        install_packages()
        done = {**done, "packages": packages, "install": ""}
        write_stamp(done)
    if done.get("install") != install:
        with step("installing openneutron"):
            pip("--no-deps", "--no-build-isolation", "-e", str(ROOT))
        # A stamp of before this entry was written with the build that is there.
        if done.get("native", native) != native:
            configure(find_cmake())
        write_bytecode()
        done = {"packages": packages, "install": install, "native": native}
        write_stamp(done)
    if not (BUILD / "build.ninja").is_file():
        configure(find_cmake())
    build()


def check_machine() -> None:
    """Stop with the Debian packages to install when something we cannot fetch ourselves is missing."""
    if sys.version_info < OLDEST_PYTHON:
        have = ".".join(map(str, sys.version_info[:2]))
        raise SetupError(f"Python 3.11 or newer is needed, this is {have}; choose another with `make setup PYTHON=...`")
    missing = []
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        missing.append("python3-venv")
    if not has_compiler("CC", "cc"):
        missing.append("gcc")
    if not has_compiler("CXX", "c++"):
        missing.append("g++")
    if missing:
        names = " ".join(missing)
        raise SetupError(f"this machine lacks what the Debian package(s) {names} bring: `sudo apt install {names}`")


def install_test_tools() -> None:
    """Install cross compiler, QEMU and browser where that is wanted and allowed: as root, with apt, in CI or when asked.

    Elsewhere the tests of firmware and report skip and name these packages.
    """
    wanted = os.environ.get("CI") == "true" or os.environ.get("OPENNEUTRON_APT") == "1"
    missing = [name for name, program in TEST_TOOLS.items() if shutil.which(program) is None]
    if not missing or not wanted or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    try:
        with step(f"installing {' '.join(missing)}"):
            run(["apt-get", "update"])
            # The C library has no program of its own to look for; it comes with the compiler.
            also = ["libnewlib-arm-none-eabi"] if "gcc-arm-none-eabi" in missing else []
            run(["apt-get", "install", "-y", "--no-install-recommends", *missing, *also])
    except SetupError as error:
        if os.environ.get("OPENNEUTRON_APT") == "1":
            raise
        say(f"without {' '.join(missing)}, whose tests will skip: {error}")


def fetch_archives() -> None:
    """Fetch what some tests need beside the environment; without it, where CI does not ask for them, those tests skip."""
    import archives

    try:
        for name in archives.pins():
            archives.fetch(name)
    except archives.ArchiveError as error:
        if os.environ.get("OPENNEUTRON_APT") == "1":
            raise SetupError(str(error)) from None
        say(f"some tests will skip: {error}")


def has_compiler(variable: str, default: str) -> bool:
    """Tell whether the compiler the user chose, or the usual one, is there (`ccache gcc`: its first word)."""
    words = shlex.split(os.environ.get(variable) or default)
    return shutil.which(words[0]) is not None


def install_packages() -> None:
    """Install every pinned package: into a new environment, or into the old one where only pins were added or changed."""
    if not is_complete() or surplus_packages():
        with step(f"making .venv with Python {sys.version.split()[0]}"):
            # A half-made environment, or one made for another Python or folder, is not worth repairing.
            shutil.rmtree(VENV, ignore_errors=True)
            run([sys.executable, "-m", "venv", str(VENV)])
    constraints = ["-c", str(REQUIREMENTS / "constraints.txt")]
    with step("installing torch"):
        pip("-r", str(REQUIREMENTS / "torch.txt"), *constraints)
    with step("installing executorch, LiteRT and tools"):
        files = [arg for name in ("runtime", "build", "dev") for arg in ("-r", str(REQUIREMENTS / f"{name}.txt"))]
        pip(*files, *constraints)
        # One pins versions of numpy and flatbuffers that nobody else here has, the other wants a package for language
        # models; both work with what is here.
        pip("--no-deps", "-r", str(REQUIREMENTS / "no_deps.txt"))


def is_complete() -> bool:
    """Tell whether the environment was once made whole, in this folder and for this Python."""
    if "packages" not in read_stamp():
        return False
    try:
        found = run([str(PYTHON), "-c", "import sys; print(sys.prefix); print(sys.version)"])
    except (SetupError, OSError):
        return False
    return found == f"{VENV}\n{sys.version}\n"


def surplus_packages() -> set[str]:
    """Return the packages in the environment that nothing pins any more."""
    pinned = {"pip", "setuptools", "openneutron"}
    for name in ("constraints", "no_deps"):
        pinned |= {line.partition("==")[0] for line in (REQUIREMENTS / f"{name}.txt").read_text("utf-8").splitlines()}
    found = json.loads(run([str(PYTHON), "-m", "pip", "list", "--format=json", "--disable-pip-version-check"]))
    return {plain_name(one["name"]) for one in found} - {plain_name(one) for one in pinned}


def plain_name(package: str) -> str:
    """Return a package's name as PyPI compares names."""
    return re.sub(r"[-_.]+", "-", package).lower()


def find_cmake() -> str:
    """Return a CMake that is new enough: the machine's, else PyPI's in the environment."""
    own = shutil.which("cmake")
    if own:
        found = re.search(r"(\d+)\.(\d+)", run([own, "--version"]))
        if found and tuple(map(int, found.groups())) >= OLDEST_CMAKE:
            return own
    packaged = VENV / "bin" / "cmake"
    if not packaged.exists():
        with step("installing cmake"):
            try:
                pip("-r", str(REQUIREMENTS / "cmake.txt"))
            except SetupError as error:
                raise SetupError(f"CMake 3.25 or newer is missing: `sudo apt install cmake`\n{error}") from None
    return str(packaged)


def configure(cmake: str) -> None:
    """Write the ninja files of the native build."""
    with step("configuring the native build"):
        shutil.rmtree(BUILD, ignore_errors=True)
        ninja = f"-DCMAKE_MAKE_PROGRAM={VENV / 'bin' / 'ninja'}"
        run([cmake, "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", ninja, f"-DPython_EXECUTABLE={PYTHON}"])


def build() -> None:
    """Bring the native libraries up to date; a no-op takes a fraction of a second."""
    with step("building the native libraries"):
        run([str(VENV / "bin" / "ninja"), "-C", str(BUILD)])


def write_bytecode() -> None:
    """Compile what is imported often: where PYTHONDONTWRITEBYTECODE is set, as in many containers, every process would."""
    with step("compiling what Python imports"):
        run([str(PYTHON), "-m", "compileall", "-q", str(ROOT / "src")])
        lines = "".join(f"try: import {name}\nexcept ImportError: pass\n" for name in IMPORTED)
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        run([str(PYTHON), "-c", lines], kept)


def cmake_files() -> list[Path]:
    """List the CMake files of the native build."""
    return [ROOT / "CMakeLists.txt", *(ROOT / "runtime").rglob("CMakeLists.txt")]


def digest(files: list[Path], *also: str) -> str:
    """Hash the files' names and contents and some more text."""
    total = hashlib.sha256("\0".join(also).encode())
    for file in sorted(files):
        total.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return total.hexdigest()


def read_stamp() -> dict[str, str]:
    """Return what was completed earlier; nothing when there is no usable environment."""
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    # The interpreter under .venv is a link that a system upgrade can break.
    return stamp if isinstance(stamp, dict) and PYTHON.exists() else {}


def write_stamp(stamp: dict[str, str]) -> None:
    """Record completed steps, so that an interrupted set-up resumes where it stopped."""
    STAMP.write_text(json.dumps(stamp))


def pip(*what: str) -> None:
    """Install with the environment's pip, silent unless it fails."""
    # Only a part of the bytecode is ever needed, which `write_bytecode` makes; compiling all of torch costs more.
    quiet = ["-qq", "--disable-pip-version-check", "--no-input"]
    run([str(PYTHON), "-m", "pip", *quiet, "install", "--no-compile", *what])


def run(command: list[str], variables: Mapping[str, str] = os.environ) -> str:
    """Run a command with the environment's tools first in PATH; on failure show what it printed."""
    environment = {**variables, "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        raise SetupError(f"`{' '.join(command)}` failed:\n{done.stdout}")
    return done.stdout


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say what is being done, then how long it took when that is worth a word."""
    start = time.monotonic()
    print(f"setup: {what}", end="", flush=True)
    try:
        yield
    except BaseException:
        print(flush=True)
        raise
    took = time.monotonic() - start
    print(f" ({took:.0f} s)" if took >= 1 else "", flush=True)


def say(what: str) -> None:
    """Print one progress line."""
    print(f"setup: {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
