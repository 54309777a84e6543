"""Starting Python in a process of its own, and saying how one ended.

Example:
    >>> process = start("openneutron.run.litert_worker", "7", stderr=log)
    >>> ending(process.wait())
    'crashed (SIGABRT)'
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import openneutron


def start(module: str, *arguments: str, more: dict[str, str] | None = None, **options: Any) -> subprocess.Popen[bytes]:
    """Run `python -m module arguments`; it finds the modules that this process finds. `more` adds to its environment.

    It gets a session of its own: Ctrl-C reaches us, and we end it.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(search_path()), **(more or {})}
    return subprocess.Popen(  # our own modules, and no shell # nosec B603
        [sys.executable, "-P", "-m", module, *arguments], env=environment, stdin=subprocess.DEVNULL, start_new_session=True,
        **options,
    )  # fmt: skip


def kill(process: subprocess.Popen[bytes]) -> None:
    """End the process and everything it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()


def ending(status: int) -> str:
    """How a process ended, from its exit status, as the end of a sentence."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"crashed ({signal.Signals(-status).name})"
    except ValueError:
        return f"crashed (signal {-status})"


def search_path() -> list[str]:
    """Where a child looks for modules: as this process does, but absolute, because its working directory may differ."""
    home = str(Path(openneutron.__file__).parent.parent)
    given = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return list(dict.fromkeys(os.path.abspath(part) for part in (*given, *sys.path, home)))
