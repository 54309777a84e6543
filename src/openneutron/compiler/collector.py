"""Pausing Python's cyclic collector while a compile builds its many small, living objects.

Each full collection walks all of them again, which makes time grow faster than the model. A compile leaves next to no
cycles behind; what there is goes with the first collection after it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Keep the collector from running inside the block, if it was on.

    Example:
        >>> with paused():
        ...     compile_graph(part, target, options)
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
