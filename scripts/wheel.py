"""Build the source archive and the wheels into dist/: manylinux for x86-64 or 64-bit Arm, the same bytes every time.

    python scripts/wheel.py                    the wheel of this machine
    python scripts/wheel.py --platform aarch64 cross-compiled with Debian's g++-aarch64-linux-gnu
    python scripts/wheel.py --twice            and again in another folder: exit code 1 unless the bytes are the same

Wheels are made from the source archive, so nothing of the checkout's own build slips in. A wheel holds driver and kernels, the
LiteRT delegate, the ExecuTorch delegate built against the executorch wheel of its platform, and a list of what it holds
and needs (CycloneDX, in the wheel's own metadata). Nothing in it depends on Python's ABI: one wheel serves every Python 3.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
WORK = ROOT / "build" / "wheels"
# Zip files cannot hold an earlier time; a fixed one makes the same sources the same bytes.
EPOCH = 315532800
STAMP = (1980, 1, 1, 0, 0, 0)
# Images of the demo; their authors ask for a citation (Krizhevsky, 2009) and name no licence.
CIFAR10 = "CIFAR-10, Alex Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009"
# Libraries that come with the user's own executorch and must not be copied into the wheel.
FOREIGN = ("libexecutorch.so", "libqnn_executorch_backend.so")


def main() -> int:
    """Build the source archive and one wheel; return the exit status."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--platform", choices=("x86_64", "aarch64"), default=platform.machine())
    arguments.add_argument("--twice", action="store_true", help="build again elsewhere and compare")
    given = arguments.parse_args()
    try:
        files = make(given.platform, DIST)
        again = make(given.platform, WORK / "again") if given.twice else []
    except subprocess.CalledProcessError as error:
        print(f"wheel: `{' '.join(map(str, error.cmd))}` failed:\n{error.stdout or ''}", file=sys.stderr)
        return 1
    for file in files:
        print(f"{file.relative_to(ROOT)}  {file.stat().st_size:,} bytes  sha256 {_digest(file)[:16]}…")
    differing = [one.name for one, other in zip(files, again, strict=False) if _digest(one) != _digest(other)]
    if given.twice:
        print(f"built twice: {', '.join(differing) + ' differ' if differing else 'the same bytes'}")
    return 1 if differing else 0


def make(chosen: str, to: Path) -> list[Path]:
    """Source archive and wheel of a platform, in a folder; where the wheel is built depends on that folder's name."""
    work = WORK / f"{chosen}-{to.name}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    to.mkdir(exist_ok=True)
    archive = source_archive(to)
    return [archive, finish(repair(build(archive, chosen, work), work), to)]


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def run(*command: str | Path, **variables: str) -> str:
    """Run a command with the build's tools first in PATH and a fixed time; on failure keep what it said."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SOURCE_DATE_EPOCH": str(EPOCH), **variables}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return done.stdout


def source_archive(to: Path) -> Path:
    """The sdist; Python, C and C++ sources and what builds them."""
    code = f"from scikit_build_core.build import build_sdist; print(build_sdist({str(to)!r}))"
    return to / run(sys.executable, "-c", code).split()[-1]


def build(archive: Path, chosen: str, folder: Path) -> Path:
    """A wheel of the archive for a platform, tagged for this machine's own Linux."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    settings = [f"build-dir={folder / 'cmake'}"]
    variables = {}
    if chosen != platform.machine():
        settings += [
            f"cmake.define.CMAKE_TOOLCHAIN_FILE={source / 'cmake' / f'{chosen}-linux-gnu.cmake'}",
            f"cmake.define.OPENNEUTRON_EXECUTORCH={foreign_executorch(chosen)}",
        ]
        variables["_PYTHON_HOST_PLATFORM"] = f"linux-{chosen}"  # what the wheel's tag is made from
    options = [word for setting in settings for word in ("-C", setting)]
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "--no-cache-dir"]
    run(*pip, *options, "-w", folder / "plain", source, **variables)
    (wheel,) = (folder / "plain").glob("*.whl")
    return wheel


def foreign_executorch(chosen: str) -> Path:
    """Headers and libraries of the installed executorch, of another platform's wheel."""
    wanted = version("executorch").partition("+")[0]
    folder = WORK / f"executorch-{wanted}-{chosen}"
    if not (folder / "executorch").is_dir():
        download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
        minor = ".".join(platform.python_version_tuple()[:2])
        where = ["--platform", f"manylinux_2_28_{chosen}", "--python-version", minor, "-d", str(folder)]
        run(*download, *where, f"executorch=={wanted}")
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder)
    return folder / "executorch"


def repair(wheel: Path, work: Path) -> Path:
    """The wheel with the oldest manylinux tag that its libraries' symbols allow; nothing is copied into it."""
    folder = work / "manylinux"
    excluded = [word for name in FOREIGN for word in ("--exclude", name)]
    run(sys.executable, "-m", "auditwheel", "repair", *excluded, "-w", folder, wheel)
    (repaired,) = folder.glob("*.whl")
    return repaired


def finish(wheel: Path, to: Path) -> Path:
    """Add the list of contents, and pack everything again in one order with one time."""
    with zipfile.ZipFile(wheel) as packed:
        files = {name: packed.read(name) for name in packed.namelist() if not name.endswith("/")}
    info = next(name.partition("/")[0] for name in files if name.endswith(".dist-info/METADATA"))
    files[f"{info}/sboms/openneutron.cdx.json"] = contents(files, info)
    record = f"{info}/RECORD"
    files.pop(record)
    lines = [f"{name},sha256={_hash(data)},{len(data)}" for name, data in sorted(files.items())]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    final = to / wheel.name
    with zipfile.ZipFile(final, "w") as packed:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, STAMP)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            packed.writestr(entry, files[name])
    return final


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def contents(files: dict[str, bytes], info: str) -> bytes:
    """A CycloneDX list: the package, its native libraries and data by digest, and the packages it asks for."""
    metadata = Parser().parsestr(files[f"{info}/METADATA"].decode())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = f"pkg:pypi/openneutron@{metadata['Version']}"
    held = [
        {
            "type": "library" if name.endswith(".so") else "data",
            "bom-ref": name,
            "name": name,
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(files[name]).hexdigest()}],
            "licenses": [{"license": {"name": CIFAR10}} if "cifar10" in name else {"expression": project["license"]}],
        }
        for name in sorted(files)
        if name.endswith((".so", ".npz"))
    ]
    wanted = sorted(metadata.get_all("Requires-Dist") or [])
    needed = [{"type": "library", "bom-ref": text, "name": text, "scope": "required"} for text in wanted]
    for entry in needed:
        if "extra ==" in entry["name"]:
            entry["scope"] = "optional"
    return json.dumps(
        {
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {
                "component": {
                    "type": "library",
                    "bom-ref": own,
                    "name": "openneutron",
                    "version": metadata["Version"],
                    "purl": own,
                    "licenses": [{"expression": project["license"]}],
                }
            },
            "components": [*held, *needed],
            "dependencies": [{"ref": own, "dependsOn": [entry["bom-ref"] for entry in [*held, *needed]]}],
        },
        indent=1,
    ).encode()


if __name__ == "__main__":
    sys.exit(main())
