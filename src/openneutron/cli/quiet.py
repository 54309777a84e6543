"""Keeping torch and its companions from talking on a user's terminal while they are imported and used."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator

# Loggers that announce optional parts they cannot load, deprecations inside torch, and their own experiments.
_TALKERS = ("torchao", "torch", "executorch", "root")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide warnings of libraries inside the block; errors are exceptions and pass."""
    loggers = [logging.getLogger(name) for name in _TALKERS]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
