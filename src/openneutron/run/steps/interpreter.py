"""Ordinary operators, in LiteRT's interpreter in a process of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass

from openneutron.errors import NoReference, RuntimeFailure
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.run import litert_process
from openneutron.run.steps import Array

_UNKNOWN_VERSION = re.compile(r"Didn't find op for builtin opcode '(\w+)' version '(\d+)'")
_NEWEST_VERSION = 32  # no operator has as many; a damaged file may claim billions


@dataclass
class InterpreterStep:
    """A run of operators as a model of its own, with the reference kernels where there are."""

    data: bytes
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    source: str
    reference: bool
    seconds: int
    keeps_state: bool
    session: litert_process.Session | None = None

    def run(self, values: dict[int, Array]) -> int:
        try:
            outputs = self._session().run([values[index] for index in self.reads], seconds=self.seconds)
        except litert_process.Refused as error:
            raise NoReference(f"LiteRT could not run the model ({_first_line(error)})", where=self.source) from error
        except NoReference:
            raise
        except RuntimeFailure as error:
            raise RuntimeFailure(error.message, where=self.source, hint=error.hint) from error
        values.update(zip(self.writes, outputs, strict=True))
        return 0

    def prepare(self) -> None:
        """Load the model, so that what LiteRT refuses is known before anything runs."""
        self._session()

    def reset(self) -> None:
        # LiteRT resets variable tensors, but resource variables only in a new interpreter.
        if self.session is not None:
            self.session.close()
        self.session = None

    def _session(self) -> litert_process.Session:
        lost = self.session is not None and not self.session.alive
        if lost and self.keeps_state:
            raise RuntimeFailure("LiteRT's process has ended, and the model's state with it", hint="reset the model")
        if self.session is None or lost:
            self.session = _load(self.data, self.source, self.reference, self.seconds)
        return self.session


def _load(data: bytes, source: str, reference: bool, seconds: int) -> litert_process.Session:
    """The model in LiteRT's process.

    Converters number an operator's version by the types it is used with; the reference kernels lag behind in some numbers,
    not in what they compute, so an unknown version is looked for under the ones before it.
    """
    while True:
        try:
            return litert_process.load(data, reference=reference, seconds=seconds)
        except litert_process.Refused as error:
            unknown = _UNKNOWN_VERSION.search(str(error))
            if unknown is None or not 1 < int(unknown[2]) <= _NEWEST_VERSION:
                raise NoReference(f"LiteRT refused the model ({_first_line(error)})", where=source) from error
            data = _with_version(data, unknown[1], int(unknown[2]), source)


def _with_version(data: bytes, code: str, version: int, source: str) -> bytes:
    """The model with all operators of this code and version one version lower."""
    model = read_model(data, source=source)
    for graph in model.graphs:
        for op in graph.operators:
            if (op.code, op.version) == (code, version):
                op.version -= 1
    return write_model(model)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
