"""Large files that a compile makes on its way and seldom needs again: kept on disk, not in memory."""

from __future__ import annotations

import tempfile
from typing import IO, Any, Final

_LARGE: Final = 1 << 26  # bytes; smaller ones are not worth a file


class Spilled:
    """Bytes, in a temporary file without a name where they are large.

    Example:
        >>> Spilled(b"bytes").read()
        b'bytes'
    """

    def __init__(self, data: bytes) -> None:
        self._data: bytes | None = data
        self._file: IO[bytes] | None = None
        if len(data) >= _LARGE:
            try:
                self._file = tempfile.TemporaryFile(prefix="openneutron-")  # noqa: SIM115  it lives as long as this object
                self._file.write(data)
                self._file.flush()
                self._data = None
            except OSError:  # a full disk: memory has them as before
                self._file = None

    def read(self) -> bytes:
        """Return the bytes."""
        if self._data is not None:
            return self._data
        assert self._file is not None
        self._file.seek(0)
        return self._file.read()

    def __deepcopy__(self, memo: Any) -> Spilled:
        return self  # nothing changes it

    def __reduce__(self) -> tuple[Any, ...]:
        return Spilled, (self.read(),)
