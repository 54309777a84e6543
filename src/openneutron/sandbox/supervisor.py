"""Call a function in a process that has limits, no network and one folder; its results come back as files.

Example:
    >>> with sandbox("openneutron.sandbox.compile_child:serve", {"source": path}, Limits(seconds=60), reads=[path]) as done:
    ...     data = done.read("program")
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from openneutron import errors
from openneutron.errors import ConverterError, FormatError, OpenNeutronError, OptionError
from openneutron.sandbox.child import ANSWER, REQUEST
from openneutron.sandbox.process import describe_end, kill, start
from openneutron.sandbox.restrictions import Restrictions
from openneutron.terminal.sizes import parse_size

OUT, ERR = "out.txt", "err.txt"
RESULTS = "results"
_WATCH_SECONDS = 0.1  # between two looks at a running process: short for a person who waits, long for a processor
_MOST_TEXT = 1 << 26  # of what the process prints; a report as JSON of the largest models has a tenth


@dataclass(frozen=True)
class Limits:
    """Limits of a sandbox: bytes of address space, seconds of processor time, bytes of one file.

    The defaults are enough for the largest models of the zoo, torch included. The wall-clock limit is twice `seconds`.

    Example:
        >>> Limits(seconds=30)
        Limits(memory=8589934592, seconds=30, file=1073741824)
    """

    memory: int = 8 << 30
    seconds: int = 600
    file: int = 1 << 30


def limits_of(text: str) -> Limits:
    """Parse limits from text; those not named keep their defaults.

    Example:
        >>> limits_of("memory=4G,seconds=30").seconds
        30
    """
    known = [one.name for one in fields(Limits)]
    given: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in known or not value:
            raise OptionError(f"the sandbox has no limit {part!r}", hint="memory=4G,seconds=60,file=1G")
        given[name] = parse_size(value, option=f"the sandbox's {name}")
    return Limits(**given)


@dataclass(frozen=True)
class Finished:
    """Result of a sandboxed call: the return value, the printed text and the files.

    `missing` names the protections that this system does not have.
    """

    folder: Path
    value: Any
    out: str
    err: str
    missing: tuple[str, ...]

    def names(self, under: str = "") -> list[str]:
        """Return the paths of all result files below the folder `under`, relative to it."""
        top = self.folder / RESULTS / under
        found = (Path(base, name) for base, _, files in os.walk(top) for name in files)
        return sorted(path.relative_to(top).as_posix() for path in found)

    def read(self, name: str) -> bytes:
        """Return the bytes of a result file; symbolic links are not followed."""
        return _plain(self.folder / RESULTS / name)


@contextlib.contextmanager
def sandbox(
    function: str,
    given: Mapping[str, Any],
    limits: Limits,
    *,
    files: Mapping[str, bytes] | None = None,
    reads: Sequence[str | os.PathLike[str] | None] = (),
    watch: Callable[[Path], None] | None = None,
) -> Iterator[Finished]:
    """Call `module:function(folder, **given)` in a sandbox that can read the files and folders of `reads`.

    `files` are written into its folder first. The function writes its results below `RESULTS` of that folder and returns a
    value that JSON can hold. An `OpenNeutronError` of the function is raised here; a crash or a time-out is an error too.
    `watch` is called with the folder again and again while the process runs; an exception of it ends the process.
    """
    with tempfile.TemporaryDirectory(prefix="openneutron-") as made:
        folder = Path(made).resolve()
        (folder / RESULTS).mkdir()
        for name, data in (files or {}).items():
            (folder / name).write_bytes(data)
        readable = tuple(os.path.realpath(one) for one in reads if one)
        restrictions = Restrictions(limits.memory, limits.seconds, limits.file, readable, (str(folder),))
        request = {"function": function, "given": dict(given), "restrictions": asdict(restrictions)}
        (folder / REQUEST).write_text(json.dumps(request))
        status = _run(folder, limits, watch)
        try:
            answer = json.loads(_plain(folder / ANSWER, _MOST_TEXT))
        except (FormatError, ValueError, RecursionError):
            raise _death_error(folder, status, limits) from None
        if not isinstance(answer, dict) or status:
            raise _death_error(folder, status, limits)
        _raise(answer.get("error"), limits)
        out, err = (_plain(folder / name, _MOST_TEXT).decode("utf-8", "replace") for name in (OUT, ERR))
        missing = tuple(str(one) for one in answer.get("missing", ()))
        yield Finished(folder, answer.get("value"), out, err, missing)


def _run(folder: Path, limits: Limits, watch: Callable[[Path], None] | None) -> int:
    own = {"TMPDIR": str(folder), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with (folder / OUT).open("wb") as out, (folder / ERR).open("wb") as err:
        process = start("openneutron.sandbox.child", str(folder), more=own, stdout=out, stderr=err)
        try:
            if watch is None:
                return process.wait(2 * limits.seconds or None)
            return _wait(process, 2 * limits.seconds, lambda: watch(folder))
        except subprocess.TimeoutExpired:
            raise _timeout_error(limits) from None
        finally:
            kill(process)  # and every process that it started


def _wait(process: subprocess.Popen[bytes], seconds: int, watch: Callable[[], None]) -> int:
    """Wait for the process (0 seconds: for ever) and call `watch` all the while."""
    until = time.monotonic() + seconds if seconds else float("inf")
    while True:
        try:
            return process.wait(_WATCH_SECONDS)
        except subprocess.TimeoutExpired:
            if time.monotonic() > until:
                raise
        watch()


def _raise(error: Any, limits: Limits) -> None:
    """Raise the error that the function reported, as the exception class of the same name."""
    if not isinstance(error, dict):
        return
    if error.get("kind") == "MemoryError":
        raise ConverterError(f"the sandbox's {limits.memory:,} bytes of memory are used up", hint=_MORE)
    named = getattr(errors, str(error.get("kind")), None)
    kind = named if isinstance(named, type) and issubclass(named, OpenNeutronError) else ConverterError
    message, where, hint = (str(error.get(name, "")) for name in ("message", "where", "hint"))
    raise kind(message, where=where, hint=hint)


_MORE = "limits are named: --sandbox-limits memory=32G,seconds=3600,file=2G, or isolated=Limits(...)"


def _timeout_error(limits: Limits) -> ConverterError:
    return ConverterError(f"the sandbox was stopped after {limits.seconds} seconds of work", hint=_MORE)


def _death_error(folder: Path, status: int, limits: Limits) -> ConverterError:
    how = describe_end(status)
    if "SIGXCPU" in how:
        return _timeout_error(limits)
    lines = [
        line.strip()
        for line in _plain(folder / ERR, _MOST_TEXT).decode("utf-8", "replace").splitlines()
        if line.strip()
    ]
    said = f": {lines[-1][:200]}" if lines else ""
    return ConverterError(f"the sandbox {how}{said}", hint=f"it had {limits.memory:,} bytes of memory; {_MORE}")


def _plain(path: Path, most: int = -1) -> bytes:
    """Return the bytes (at most `most`) of a regular file; links, pipes and devices are refused."""
    try:
        place = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        raise FormatError("the sandbox left no such file", where=path.name) from error
    with os.fdopen(place, "rb") as file:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise FormatError("the sandbox left something that is no file", where=path.name)
        return file.read(most)
