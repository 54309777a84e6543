"""Memory of this process: what was freed goes back to the system."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


def trim_heap() -> None:
    """Return freed memory to the system, where the C library can (glibc); elsewhere nothing happens.

    Weights of one layer after the other leave gaps in the heap: without this a compile of a large model keeps as much memory
    for gaps as for its INT8 weights, twice over.
    """
    function = _malloc_trim()
    if function is not None:
        function(0)


@cache
def _malloc_trim() -> Any:
    try:
        return getattr(ctypes.CDLL(None), "malloc_trim", None)
    except (OSError, TypeError):  # no C library to ask: Windows
        return None
