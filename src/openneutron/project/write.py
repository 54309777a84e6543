"""Write the files of a project into a folder: all of them, or none.

Example:
    >>> write_files({"README.md": b"..."}, Path("folder"))
    [PosixPath('folder/README.md')]
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from openneutron.errors import OptionError

MARK = "project.json"  # what the folder of a project is known by


def check_folder(folder: Path, *, force: bool) -> None:
    """Refuse, before any work, a folder that a project cannot be written to; with `force` a project there is replaced."""
    where = str(folder)
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise OptionError("this is no folder", where=where, hint="name a folder that does not exist yet")
    if folder.is_dir() and any(folder.iterdir()):
        if not force:
            raise OptionError(
                "the folder is not empty", where=where, hint="name another one, or replace it with --force"
            )
        if not (folder / MARK).is_file():
            raise OptionError(
                f"the folder holds no {MARK}, so it is no project that --force may replace", where=where,
                hint="name another folder",
            )  # fmt: skip
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise OptionError(f"the folder {str(parent)!r} does not exist", where=where, hint="make it first")
    if not os.access(parent, os.W_OK):
        raise OptionError("writing there is not permitted", where=where)


def write_files(files: Mapping[str, bytes], folder: Path, *, force: bool = False) -> list[Path]:
    """Write a project and return its files' paths; the folder appears only when it is complete."""
    check_folder(folder, force=force)
    target = folder.absolute()
    try:
        made = _new_folder(target)
        try:
            for name, data in files.items():
                place = made / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
            _replace(made, target)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OptionError(f"the project cannot be written ({reason})", where=str(folder)) from None
    return [folder / name for name in files]


def _replace(made: Path, target: Path) -> None:
    """Put the finished folder in place; an old project is moved away first and comes back when that fails."""
    if not target.exists():
        made.rename(target)
        return
    old = _new_folder(target)
    target.rename(old / "old")
    try:
        made.rename(target)
    except OSError:
        (old / "old").rename(target)
        old.rmdir()
        raise
    shutil.rmtree(old, ignore_errors=True)


def _new_folder(beside: Path) -> Path:
    """A folder with a name not used yet, with the permissions that any new folder of this user gets."""
    made = beside.with_name(f".{beside.name[:100]}.{os.urandom(8).hex()}")
    made.mkdir()
    return made
