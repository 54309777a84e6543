"""Run LiteRT's interpreters in a separate process, so that a crash or an endless loop becomes an error.

One process serves all models of this one; it is started when the first is loaded and goes with us. When it dies, the next
load starts another.

Example:
    >>> session = load(model, reference=True, seconds=60)
    >>> (scores,) = session.run([image], seconds=60)
"""

from __future__ import annotations

import itertools
import math
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import IO, Any

import numpy.typing as npt

from openneutron import environment
from openneutron.errors import OpenNeutronError, RuntimeFailure
from openneutron.run import wire
from openneutron.sandbox.process import describe_end, kill, start

Array = npt.NDArray[Any]

# Address space of the process where OPENNEUTRON_MEMORY does not say: Python and LiteRT take an eighth of it, and the largest
# models for these chips another.
DEFAULT_MEMORY = 4 << 30
_OWN_MEMORY = 512 << 20  # of Python, numpy and LiteRT, beside what a setting grants the model
_START_SECONDS = 60  # a loaded machine starts Python in seconds
_LOG_BYTES = 1 << 12
_numbers = itertools.count()
_lock = threading.Lock()
_shared: _Process | None = None


class Refused(Exception):
    """LiteRT refused a model or its inputs; the message is LiteRT's."""


class Session:
    """A model loaded into the process. `alive` is False once the process, and so the model's state, is gone."""

    def __init__(self, process: _Process, number: int) -> None:
        self._process, self._number = process, number

    @property
    def alive(self) -> bool:
        return self._process.alive

    def run(self, inputs: Sequence[Array], *, seconds: int) -> list[Array]:
        """Run the model; raises `Refused` when LiteRT refuses, `RuntimeFailure` when it crashes or exceeds the time limit."""
        arrays, data = wire.pack(inputs)
        header, payload = self._process.ask({"do": "run", "model": self._number, "arrays": arrays}, data, seconds)
        try:
            return [array.copy() for array in wire.unpack(header.get("arrays"), payload)]
        except wire.Garbled as error:
            raise self._process.end(f"answered what it should not ({error})") from error

    def close(self) -> None:
        """Unload the model."""
        if self.alive:
            self._process.ask({"do": "drop", "model": self._number}, b"", _START_SECONDS)


def load(data: bytes, *, reference: bool, seconds: int) -> Session:
    """Load a model for LiteRT's reference kernels or its default ones; raises `Refused` when LiteRT refuses it.

    Example:
        >>> load(Path("model.tflite").read_bytes(), reference=True, seconds=60)
    """
    process = _current()
    number = next(_numbers)
    process.ask({"do": "load", "model": number, "reference": reference}, data, seconds)
    return Session(process, number)


def _current() -> _Process:
    """Return the LiteRT process of this process; a fork starts its own, and a dead one is replaced."""
    global _shared
    with _lock:
        if _shared is None or not _shared.alive:
            _shared = _Process()
        return _shared


class _Process:
    def __init__(self) -> None:
        if sys.platform in ("win32", "emscripten"):
            hint = "`openneutron run` runs it there"
            raise OpenNeutronError(
                "operators left on the CPU run in LiteRT, in a process of its own, which needs Linux or macOS",
                hint=hint,
            )
        memory = environment.memory(DEFAULT_MEMORY - _OWN_MEMORY)
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process ends
        self._connection, theirs = socket.socketpair()
        with theirs:
            arguments = (str(theirs.fileno()), str(memory + _OWN_MEMORY if memory else 0))
            self._most = memory or 1 << 40
            self._process = start(
                "openneutron.run.litert_worker", *arguments, more={"OPENBLAS_NUM_THREADS": "1"},
                stdout=self._log, stderr=subprocess.STDOUT, pass_fds=[theirs.fileno()],
            )  # fmt: skip

    @property
    def alive(self) -> bool:
        return self._owner == os.getpid() and self._process.returncode is None

    def ask(self, header: dict[str, Any], payload: bytes, seconds: int) -> tuple[dict[str, Any], bytes]:
        """Send a request and wait for its answer, at most `seconds` plus the time that Python takes to start."""
        with self._lock:
            until = time.monotonic() + seconds + _START_SECONDS * (header["do"] == "load") if seconds else math.inf
            try:
                wire.send(self._connection, {**header, "seconds": seconds}, payload, until=until)
                answer = wire.receive(self._connection, most=self._most, until=until)
            except TimeoutError:
                hint = f"{environment.TIMEOUT} (--timeout) allows more, 0 any number"
                raise self.end(f"took more than {seconds} seconds and was stopped", hint) from None
            except wire.Garbled as error:
                raise self.end(f"answered what it should not ({error})") from error
            except OSError:
                answer = None
            except BaseException:
                self.end("was interrupted")
                raise
            if answer is None:
                raise self.end()
        if "error" in answer[0]:
            raise _error(answer[0])
        return answer

    def end(self, how: str = "", hint: str = "") -> RuntimeFailure:
        """End the process and return the failure to raise."""
        if how:
            kill(self._process)
        else:
            how = describe_end(self._process.wait())
        self._connection.close()
        said = self._last_words()
        self._log.close()
        return RuntimeFailure(
            f"LiteRT's process {how}{f': {said}' if said and not hint else ''}",
            hint=hint or "LiteRT cannot run this model; `openneutron compile` and `inspect` do not need it to",
        )

    def _last_words(self) -> str:
        """Return the last line that LiteRT or the C library printed, which names the reason of a crash."""
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(self._log.tell() - _LOG_BYTES, 0))
        lines = [line.strip() for line in self._log.read().decode("utf-8", "replace").splitlines()]
        return next((line[:200] for line in reversed(lines) if line and not line.startswith(("INFO:", "WARNING:"))), "")


def _error(answer: dict[str, Any]) -> Exception:
    text = str(answer.get("text", ""))
    kind = answer["error"]
    if kind in ("ImportError", "ModuleNotFoundError"):
        return OpenNeutronError(
            "running LiteRT operators needs the ai-edge-litert package", hint="pip install ai-edge-litert"
        )
    if kind == "MemoryError":
        return RuntimeFailure(
            "LiteRT's process has no memory left", hint=f"{environment.MEMORY} allows more bytes, 0 any number"
        )
    return Refused(text or f"it gives no reason; where it lacks memory, {environment.MEMORY}=0 lifts the limit")
