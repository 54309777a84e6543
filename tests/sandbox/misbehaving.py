"""What a model that took its process over might try; called in a sandbox by its tests."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from openneutron.errors import FormatError
from openneutron.sandbox.supervisor import RESULTS


def _tried(action: Any) -> str:
    try:
        action()
    except (OSError, MemoryError) as error:
        return type(error).__name__
    return "done"


def grab(folder: Path, secret: str, beside: str, port: int) -> dict[str, str]:
    """Everything that must not work, and how it ended."""
    return {
        "read": _tried(lambda: Path(secret).read_text()),
        "list": _tried(lambda: list(Path(secret).parent.iterdir())),
        "write": _tried(lambda: Path(beside).write_text("x")),
        "link": _tried(lambda: (folder / RESULTS / "link").symlink_to(secret)),
        "connect": _tried(lambda: socket.create_connection(("127.0.0.1", port), 2)),
        "memory": _tried(lambda: bytearray(3 << 30)),
        "file": _tried(lambda: (folder / RESULTS / "large").write_bytes(bytes(2 << 20))),
    }


def behave(folder: Path, text: str) -> int:
    """Leaves a file and a number."""
    print(text)
    (folder / RESULTS / "a" / "b").mkdir(parents=True)
    (folder / RESULTS / "a" / "b" / "file").write_text(text)
    return len(text)


def refuse(folder: Path) -> None:
    raise FormatError("it is wrong", where="x.tflite", hint="mend it")


def allocate(folder: Path) -> None:
    bytearray(3 << 30)


def crash(folder: Path) -> None:
    os.abort()


def spin(folder: Path) -> None:
    while True:
        pass


def answer_nonsense(folder: Path) -> None:
    (folder / "answer.json").write_text("[" * 100_000)
    os._exit(0)


def leave_a_pipe(folder: Path) -> int:
    os.mkfifo(folder / RESULTS / "pipe")
    return 0
