"""Read files with clear errors; write files completely or not at all.

Example:
    >>> write_file("model.pte", program.pte)
    >>> kind_of(read_file("model.pte"))
    'pte'
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable
from pathlib import Path

from openneutron.errors import OptionError

# First words of the files we know: LiteRT and ExecuTorch put an identifier at byte 4, microcode its magic at byte 0.
_LITERT = b"TFL3"
_EXECUTORCH = b"ET"
_MICROCODE = (0x64434D6E).to_bytes(4, "little")
# Keys of the fields a model goes on with: producer, version, domain, model version, text, graph, opsets.
_ONNX_FIELDS = (0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42)
# What files made here contain: the custom operator of compiled LiteRT models, our name in reports and certificates.
_NEUTRON_GRAPH = b"NeutronGraph"
_OURS = b"openneutron"
_ZIP = b"PK\x03\x04"
_MOST_NAMES = 10_000  # tried for a new file, as `tempfile` does


def read_file(path: str | os.PathLike[str], most: int = -1) -> bytes:
    """Return the file's bytes, at most the first `most`; an `OptionError` says what is wrong with the path."""
    name = os.fspath(path)
    try:
        with Path(name).open("rb") as file:
            return file.read(most)
    except FileNotFoundError:
        raise OptionError("there is no such file", where=name) from None
    except IsADirectoryError:
        raise OptionError("this is a folder, a file is needed", where=name) from None
    except OSError as error:
        raise OptionError(f"the file cannot be read ({error.strerror or error})", where=name) from None


def check_target(
    path: str | os.PathLike[str], *suffixes: str, inputs: Iterable[str | os.PathLike[str] | None] = ()
) -> Path:
    """Check, before any work, that a result can be written there; return the path.

    With `suffixes`, the name must end in one of them. Whatever its name, it must be none of the files in `inputs`.

    Example:
        >>> check_target("model.pte", ".pte")
        PosixPath('model.pte')
    """
    name = os.fspath(path)
    target = Path(name)
    if target.is_dir():
        raise OptionError("this is a folder; name the file to write", where=name)
    if suffixes and target.suffix not in suffixes and not _is_special(target):
        raise OptionError(f"the name must end in {' or '.join(suffixes)}", where=name)
    folder = target.parent
    if not folder.is_dir():
        raise OptionError(f"the folder {str(folder)!r} does not exist", where=name, hint="make it first")
    if not os.access(target if target.exists() else folder, os.W_OK):
        raise OptionError("writing there is not permitted", where=name)
    if target.is_file() and any(given and Path(given).exists() and target.samefile(given) for given in inputs):
        raise OptionError("this is an input, and inputs are never written over", where=name, hint="name another file")
    return target


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Refuse to replace a file that is no result of a compile, such as the model somebody trained.

    Replaceable are programs, LiteRT files with a NeutronGraph, files that name us (reports, certificates) and empty ones.

    Example:
        >>> check_replaceable("model.pte")
    """
    target = Path(path)
    if not target.is_file():
        return
    data = read_file(target)
    made = _NEUTRON_GRAPH in data if kind_of(data) == "tflite" else _OURS in data.lower() or kind_of(data) == "pte"
    if data and not made:
        raise OptionError(
            "this file exists and is no result of a compile", where=os.fspath(path),
            hint="name another file, or replace it with --force",
        )  # fmt: skip


def write_file(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write the whole file or none of it: a reader sees the old content or the new one, never a part.

    Example:
        >>> write_file("notes.txt", "text is written as UTF-8")
    """
    target = check_target(path)
    content = data.encode() if isinstance(data, str) else data
    try:
        if _is_special(target):
            target.write_bytes(content)
        else:
            _replace(target.resolve(), content)
    except OSError as error:
        raise OptionError(f"the file cannot be written ({error.strerror or error})", where=os.fspath(path)) from None


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Create the folder at `path` if it does not exist, and return it."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"the folder cannot be made ({error.strerror or error})", where=os.fspath(path)) from None
    return folder


def bundle_of(program: str | os.PathLike[str]) -> Path:
    """Return the folder of a program's debug bundle (the dumps of its compile), which lies beside it.

    Example:
        >>> bundle_of("nets/model.pte")
        PosixPath('nets/model.debug')
    """
    return Path(program).with_suffix(".debug")


def kind_of_file(path: str | os.PathLike[str]) -> str:
    """Return `kind_of` of a file; only its first bytes are read."""
    return kind_of(read_file(path, 16))


def kind_of(data: bytes) -> str:
    """Return the file type that the first bytes show, or "" when it is unknown.

    Types are "tflite", "pte", "microcode", "onnx" and "zip" (a .pt2 or .npz file).

    Example:
        >>> kind_of(b"\\x1c\\x00\\x00\\x00TFL3")
        'tflite'
    """
    if data[4:8] == _LITERT:
        return "tflite"
    if data[4:6] == _EXECUTORCH:
        return "pte"
    if data[:4] == _MICROCODE:
        return "microcode"
    if data[:4] == _ZIP:
        return "zip"
    # ONNX has no magic: a protobuf that begins with field 1, a small version, and goes on with another low field.
    is_onnx = len(data) > 4 and data[0] == 0x08 and 1 <= data[1] <= 0x7F and data[2] in _ONNX_FIELDS
    return "onnx" if is_onnx else ""


def _is_special(path: Path) -> bool:
    """True for what exists and is no regular file: /dev/null, a pipe."""
    return path.exists() and not path.is_file()


def _new_file(beside: Path) -> tuple[int, str]:
    """A file with a name not used yet, with the permissions any new file of this user gets: the system applies its mask.

    `tempfile` makes private files, and asking for the mask means setting it, for all threads.
    """
    for _ in range(_MOST_NAMES):
        name = str(beside.with_name(f".{beside.name[:200]}.{os.urandom(8).hex()}"))
        with contextlib.suppress(FileExistsError):
            return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o666), name
    raise FileExistsError(errno.EEXIST, "no temporary name is free")


def _replace(target: Path, content: bytes) -> None:
    handle, name = _new_file(target)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            if target.exists():
                os.fchmod(handle, target.stat().st_mode & 0o777)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
