"""Print errors to stderr, results to stdout, and progress only on a terminal."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from openneutron.terminal.escapes import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

# People notice a wait of two seconds; before that a bar would only flicker.
PATIENCE_SECONDS = 2.0
PLEASE_REPORT = "This is a bug in OpenNeutron: run the command again with --debug and report what it prints"


class ReaderGone(Exception):
    """Nobody reads stdout any more (`| head`). Not an OSError, which click would turn into an exit code of its own."""


def put(text: str) -> None:
    """Print plain text, JSON or disassembly, on stdout."""
    try:
        print(printable(text))
    except BrokenPipeError:
        raise ReaderGone from None


def error(message: str) -> None:
    """Print one line on stderr."""
    print(f"openneutron: {printable(message)}", file=sys.stderr)


def stdout() -> Console:
    """The console for results. When piped it is plain and wide, so that nothing is cut or wrapped by a terminal."""
    from rich.console import Console
    from rich.segment import Segment

    class Screen(Console):
        """A console that leaves a closed pipe to `main` and obeys no text but its own styles."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for one in super().render(renderable, options):
                yield one if one.control else Segment(printable(one.text), one.style)

        def on_broken_pipe(self) -> None:
            raise ReaderGone

    # Wide enough for every table we print; rich would assume 80 columns where there is no terminal.
    return Screen(width=None if sys.stdout.isatty() else 200, soft_wrap=False, highlight=False)


@contextlib.contextmanager
def progress(first: str) -> Iterator[Callable[[str], None]]:
    """Show the current stage with a bar and its time while the block runs; silent unless stderr is a terminal.

    The bar appears after two seconds, so that quick commands do not flicker; a stage that says "30 of 200" fills it.

    Example:
        >>> with progress("reading") as stage:
        ...     stage("compiling")
    """
    if not sys.stderr.isatty():
        yield lambda stage: None
        return
    from threading import Timer

    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(24), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(first, total=None)

    def stage(text: str) -> None:
        done, total = parse_count(text)
        bar.update(task, description=printable(text), completed=done, total=total)

    appear = Timer(PATIENCE_SECONDS, bar.start)
    appear.daemon = True
    appear.start()
    try:
        yield stage
    finally:
        appear.cancel()
        appear.join()  # it may be starting the bar right now
        bar.stop()


def parse_count(text: str) -> tuple[int, int | None]:
    """Parse "30 of 200" in a stage's text; (0, None) when it has no such numbers.

    Example:
        >>> parse_count("float: 1,200 of 5,000")
        (1200, 5000)
    """
    found = re.search(r"([\d,]+) of ([\d,]+)", text)
    if found is None:
        return 0, None
    return int(found[1].replace(",", "")), int(found[2].replace(",", ""))
