"""One lock for work that torch and ExecuTorch cannot do in two threads of a process at a time.

`torch.export` refuses a second thread, a calibration sets torch's number of threads, a compile sets the caller's model to
evaluation mode, and lowering replaces functions of torch and ExecuTorch while it runs. So each function that does any of
these takes this lock as a whole. Nothing of ours needs it: LiteRT files are compiled without.

Example:
    >>> with torch_lock():
    ...     program = torch.export.export(model, inputs)
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_locks = [threading.RLock()]


@contextmanager
def torch_lock() -> Iterator[None]:
    """Wait until no other thread works with torch in this way; a thread that has the lock may take it again."""
    with _locks[0]:
        yield


def _renew() -> None:
    """Give a forked process a lock of its own: the thread that holds the parent's may not exist there."""
    _locks[0] = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
