"""Keeping torch and its companions from talking on a user's terminal while they are imported and used."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide warnings inside the block: optional parts that cannot be loaded, deprecations between libraries.

    What concerns the user is an exception or part of a report and passes.
    """
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)


@contextlib.contextmanager
def without_torch_internals() -> Iterator[None]:
    """Hide what torch says to itself when it copies an exported program; warnings about the user's model pass."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"`isinstance\(treespec, LeafSpec\)`", category=FutureWarning)
        yield
