"""The one way the checker says no."""

from __future__ import annotations


class Refused(ValueError):
    """The file is not proved; the message names the first place that is wrong, `offset` its byte where there is one."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message if offset is None else f"byte {offset}: {message}")
        self.offset = offset
