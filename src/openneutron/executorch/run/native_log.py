"""The delegate library in this process, and the error sentences it takes from ExecuTorch's log."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from openneutron.errors import OpenNeutronError

OUR_MARK: Final = "NeutronBackend: "  # how runtime/host/delegate/message.h begins its sentences


@dataclass(frozen=True)
class Outcome:
    """What a call into the runtime gave: a value or an error, and the error lines it logged."""

    value: Any
    error: Exception | None
    lines: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Our delegate's last word, else the runtime's first, which is nearest to the cause, else the exception."""
        ours = [line.removeprefix(OUR_MARK) for line in self.lines if line.startswith(OUR_MARK)]
        return ours[-1] if ours else self.lines[0] if self.lines else str(self.error)


class DelegateLibrary:
    """The loaded `libopenneutron_delegate.so`."""

    def __init__(self, path: Path) -> None:
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise OpenNeutronError(
                f"the delegate cannot be loaded ({error})",
                where=str(path),
                hint="run `make setup` in the project's root",
            ) from error
        self._library.openneutron_log_end.restype = ctypes.c_char_p

    @property
    def registered(self) -> bool:
        """Whether ExecuTorch took our backend under its name."""
        return bool(self._library.openneutron_registered())

    def watch(self, action: Callable[[], Any]) -> Outcome:
        """Call into the runtime; error lines of this thread are kept instead of printed."""
        value, error = None, None
        self._library.openneutron_log_begin()
        try:
            value = action()
        except Exception as raised:
            error = raised
        finally:
            text: bytes = self._library.openneutron_log_end()
        return Outcome(value, error, tuple(text.decode("utf-8", "replace").splitlines()))
