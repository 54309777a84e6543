"""Pickle scan: finds what the pickles of an archive would import, without unpickling anything.

Example:
    >>> scan(Path("model.pt2").read_bytes(), where="model.pt2")
"""

from __future__ import annotations

import io
import pickletools  # pickletools only disassembles # nosec B403
import re
import zipfile

from openneutron.errors import FormatError

# The names that torch.save refers to in a file of tensors; all of them only construct tensors.
_ALLOWED = re.compile(
    r"torch (Size|device|dtype|BFloat16Storage|\w+Storage|float\w*|bfloat16|u?int\d+|bool|complex\d+|q[u]?int\d+)"
    r"|torch\._utils _rebuild_\w+|torch\._tensor _rebuild_from_type_v2|torch\.nn\.parameter (Parameter|Buffer)"
    r"|torch\.storage (UntypedStorage|TypedStorage)|torch\.serialization _get_layout"
    r"|collections OrderedDict|_codecs encode|(builtins|__builtin__) (set|frozenset|slice|complex|range)"
)
_ARCHIVE = b"PK\x03\x04"
_DEEPEST = 2  # levels of archives: entries that torch.save wrote are archives themselves


def scan(data: bytes, *, where: str, depth: int = 0) -> None:
    """Raise a `FormatError` if a pickle in the archive, or in an archive inside it, refers to other names than tensors need.

    Example:
        >>> scan(data, where="model.pt2")
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > len(data):
                raise FormatError("its entries are compressed, which torch.export.save does not do", where=where)
            for entry in archive.infolist():
                _scan_entry(archive.read(entry), f"{where}, {entry.filename}", depth + 1)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise FormatError(f"this is no exported program: {error}", where=where) from None


def _scan_entry(data: bytes, where: str, depth: int) -> None:
    if data[:4] == _ARCHIVE:
        if depth >= _DEEPEST:
            raise FormatError("archives are nested too deep", where=where)
        scan(data, where=where, depth=depth)
        return
    # Another entry says which entries torch unpickles, so all are scanned. An unpickler executes while it reads, so
    # everything before the first invalid byte counts. Old files are several pickles in a row.
    stream = io.BytesIO(data)
    try:
        texts = 0
        while stream.tell() < len(data):
            for code, argument, _ in pickletools.genops(stream):
                texts += isinstance(argument, (str, bytes))
                if code.name in ("GLOBAL", "INST") and not _ALLOWED.fullmatch(str(argument)):
                    raise _refusal(f"refers to {str(argument).replace(' ', '.')!r}", where)
                # This opcode takes its names from two strings before it; torch writes protocol 2, which does not have
                # it.
                if code.name == "STACK_GLOBAL" and texts > 1:
                    raise _refusal("names functions in a way torch does not use", where)
    except (ValueError, UnicodeError, IndexError, OverflowError):
        return  # weights or text: no pickle from here on


def _refusal(found: str, where: str) -> FormatError:
    return FormatError(
        f"a pickle in it {found}, which could run any code; it was not loaded",
        where=where, hint="if it is yours, load it with torch.export.load and give the program to openneutron.compile",
    )  # fmt: skip
