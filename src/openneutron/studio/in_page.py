"""The studio's calls answered in this process: for Pyodide, where a page's worker that can be ended is the sandbox.

The worker gives and takes text and bytes only. Models and variants lie in one folder of the page's memory; `state` and
`restore` carry them over the end of a worker.

Example:
    >>> page = InPage("/session")
    >>> json.loads(page.call("hello", "{}", print))["result"]["engine"]
    'pyodide'
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from openneutron.errors import InternalError, OpenNeutronError
from openneutron.studio.api import Abilities, Api, Done
from openneutron.studio.session import Session
from openneutron.studio.work import WORK, Stage

NOTE = (
    "This page takes LiteRT files. PyTorch, ONNX and compiled .pte files, accuracy, checks against LiteRT and operators left on"
    " the CPU need `pip install openneutron` and `openneutron studio`, which opens the same page with all of them."
)


class InPage:
    """The engine of one page. Answers are JSON text: {"result": …} or {"error": …}."""

    def __init__(self, folder: str, samples: str = "[]") -> None:
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        abilities = Abilities("pyodide", torch=False, reference=False, note=NOTE, samples=json.loads(samples))
        self._session = Session(place)
        self._api = Api(self._session, perform, abilities)

    def call(self, method: str, parameters: str, progress: Callable[[str], None]) -> str:
        """Answer a call of the page."""
        return _answer(lambda: self._api.call(method, json.loads(parameters), progress))

    def upload(self, name: str, path: str, model: str) -> str:
        """Keep a dropped file, which lies at `path` of the page's memory."""
        return _answer(lambda: self._api.upload(name, Path(path).read_bytes(), model))

    def download(self, variant: str, name: str) -> bytes:
        """Return a file of a variant."""
        return self._api.download(variant, name)[1]

    def state(self) -> str:
        """Return what a later worker needs beside the folder's files."""
        return json.dumps(self._session.dump())

    def restore(self, state: str) -> None:
        """Take over the state of an earlier worker, whose files lie in the folder again."""
        self._session.load(json.loads(state))


def perform(work: str, given: Mapping[str, Any], stage: Stage, *, reads: list[str], files: Mapping[str, bytes]) -> Done:
    """Do a piece of work here and now."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        given = {**given, **({"arrays": str(folder / given["arrays"])} if given.get("arrays") else {})}
        out = folder / "out"
        out.mkdir()
        value = WORK[work](out, stage, **given)
        return Done(value, {path.name: path.read_bytes() for path in out.iterdir()})


def _answer(work: Callable[[], Any]) -> str:
    try:
        return json.dumps({"result": work()})
    except OpenNeutronError as error:
        bug = isinstance(error, InternalError)
        return json.dumps({"error": {"text": str(error), "message": error.message, "hint": error.hint, "bug": bug}})
    except (ImportError, MemoryError, RecursionError) as error:
        # What a page lacks and an installed OpenNeutron has.
        text = f"this page cannot do that ({type(error).__name__}: {error})"
        return json.dumps({"error": {"text": f"{text}. Hint: {NOTE}", "message": text, "hint": NOTE, "bug": False}})
