"""What the subcommands share on screen: errors on stderr, results on stdout, progress only where someone watches."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PLEASE_REPORT = "This is a bug in OpenNeutron: run the command again with --debug and report what it prints"


class ReaderGone(Exception):
    """Nobody reads stdout any more (`| head`). Not an OSError, which click would turn into an exit code of its own."""


def put(text: str) -> None:
    """Print plain text, JSON or disassembly, on stdout."""
    try:
        print(text)
    except BrokenPipeError:
        raise ReaderGone from None


def error(message: str) -> None:
    """Print one line on stderr."""
    print(f"openneutron: {message}", file=sys.stderr)


def stdout() -> Console:
    """The console for results. When piped it is plain and wide, so that nothing is cut or wrapped by a terminal."""
    from rich.console import Console

    class Screen(Console):
        """A console that leaves a closed pipe to `main`."""

        def on_broken_pipe(self) -> None:
            raise ReaderGone

    # Wide enough for every table we print; rich would assume 80 columns where there is no terminal.
    return Screen(width=None if sys.stdout.isatty() else 200, soft_wrap=False, highlight=False)


@contextlib.contextmanager
def progress(first: str) -> Iterator[Callable[[str], None]]:
    """Show the current stage with a spinner and its time while the block runs; silent unless stderr is a terminal.

    Example:
        >>> with progress("reading") as stage:
        ...     stage("compiling")
    """
    if not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(first, total=None)
        yield lambda stage: bar.update(task, description=stage)
