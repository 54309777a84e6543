"""Why a loop or a branch stays what it is, and runs on the CPU."""

from __future__ import annotations


class Stays(Exception):
    """A reason in one clause, and what to do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint
