"""Suppress warnings and log messages of torch and other libraries."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator

from openneutron.terminal.escapes import printable


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Hide Python's warnings inside the block, but no log messages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide warnings inside the block: optional parts that cannot be loaded, deprecations between libraries.

    What concerns the user is an exception or part of a report and passes.
    """
    import logging

    before = logging.root.manager.disable
    with without_warnings():
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)


@contextlib.contextmanager
def without_logs() -> Iterator[None]:
    """Hide log messages inside the block, of errors too: torch logs tracebacks of what it raises, and we tell the exception."""
    import logging

    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def without_torch_internals() -> Iterator[None]:
    """Hide torch's warning about its own code when it copies an exported program; all other warnings pass."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"`isinstance\(treespec, LeafSpec\)`", category=FutureWarning)
        yield


def settle() -> None:
    """Hide warnings in the whole process unless `-v` is on the command line; for scripts, before they import torch.

    Example:
        >>> settle()
        >>> import torch
    """
    if "-v" in sys.argv:
        sys.argv.remove("-v")
        return
    import logging

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)


@contextlib.contextmanager
def without_native_chatter() -> Iterator[None]:
    """Hide INFO and WARNING lines that native libraries write to the terminal inside the block; all other lines pass.

    LiteRT announces every delegate it makes, ExecuTorch each file about the processor; neither has a switch for it.
    """
    import tempfile  # slow to import, and few commands come here

    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)
            written.seek(0)
            lines = written.read().decode("utf-8", "replace").splitlines(True)
            kept = [line for line in lines if not line.startswith(("INFO:", "WARNING:", "[cpuinfo_utils.cpp:"))]
            os.write(2, printable("".join(kept)).encode())
