"""A checksum behind an ExecuTorch program: 16 bytes that every runtime ignores and `load_program` verifies.

ExecuTorch checks the structure of a `.pte`, not its meaning: a flipped byte in an operator's argument aborts the
process. A sealed file that was damaged is refused before the runtime sees it.

Example:
    >>> sealed = seal_pte(pte)
    >>> check_seal(sealed, where="model.pte")
    True
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from io import SEEK_END, BytesIO
from typing import BinaryIO, Final

from openneutron.errors import FormatError

_MAGIC: Final = 0x64534E4F  # "ONSd" in the file
_VERSION: Final = 1
_TRAILER: Final = struct.Struct("<IIII")  # magic, version, bytes of the program, CRC-32 of every byte before it


def seal_pte(pte: bytes) -> bytes:
    """Return the program with a checksum appended; a sealed program is returned unchanged."""
    if check_seal(pte, where="<pte>"):
        return pte
    return pte + _trailer(len(pte), zlib.crc32(pte))


def write_sealed(write: Callable[[BinaryIO], object]) -> bytes:
    """Return the program that `write` writes to a file, with a checksum appended; in memory there is one copy of it.

    Example:
        >>> pte = write_sealed(edge.to_executorch().write_to_file)
    """
    file = BytesIO()
    write(file)
    with file.getbuffer() as pte:
        trailer = _trailer(len(pte), zlib.crc32(pte))
    file.seek(0, SEEK_END)
    file.write(trailer)
    return file.getvalue()


def _trailer(size: int, crc: int) -> bytes:
    """Return the bytes behind a program of this size and checksum."""
    head = _TRAILER.pack(_MAGIC, _VERSION, size, 0)[:-4]
    return head + struct.pack("<I", zlib.crc32(head, crc))


def check_seal(pte: bytes, *, where: str) -> bool:
    """Return whether the program is sealed; a `FormatError` when its bytes have changed since."""
    start = len(pte) - _TRAILER.size
    if start < 0:
        return False
    magic, version, size, crc = _TRAILER.unpack_from(pte, start)
    if magic != _MAGIC or version != _VERSION:
        return False
    if size != start or zlib.crc32(memoryview(pte)[:-4]) != crc:
        raise FormatError(
            "the program's checksum is wrong: the file was changed after it was written",
            where=f"{where}, byte {len(pte) - 4}",
            hint="export the model again, or copy the file again",
        )
    return True


def remove_seal(pte: bytes, *, where: str) -> bytes:
    """Return the program without its checksum, if it has one, for editing; call `seal_pte` afterwards."""
    return pte[: -_TRAILER.size] if check_seal(pte, where=where) else pte
