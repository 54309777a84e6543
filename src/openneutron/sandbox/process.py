"""Start and end Python processes, and describe how one ended.

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
    """Start `python -m module arguments` with this process's module search path. `more` adds environment variables.

    The process gets its own session, so that Ctrl-C reaches only the parent, which then ends it.
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


def describe_end(status: int) -> str:
    """Describe an exit status as the end of a sentence."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"crashed ({signal.Signals(-status).name})"
    except ValueError:
        return f"crashed (signal {-status})"


def search_path() -> list[str]:
    """Return this process's module search path with absolute folders: a child may have another working directory."""
    home = str(Path(openneutron.__file__).parent.parent)
    given = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return list(dict.fromkeys(os.path.abspath(part) for part in (*given, *sys.path, home)))
