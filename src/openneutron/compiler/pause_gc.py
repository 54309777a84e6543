"""Pauses Python's cyclic garbage collector during a compile, which builds many small objects that stay alive.

Each full collection visits all of them again, so compile time would grow faster than the model. A compile leaves hardly any
reference cycles; the next collection frees them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_gc() -> Iterator[None]:
    """Disable the collector inside the block, if it was enabled.

    Example:
        >>> with pause_gc():
        ...     compile_graph(part, target, options)
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
