"""Compile a file in a sandboxed process: `openneutron.compile(..., isolated=True)`.

Example:
    >>> compile_in_sandbox("upload.tflite", Limits(seconds=60), {"target": "mcxn94x"})
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from openneutron.errors import FormatError, OptionError
from openneutron.files import kind_of
from openneutron.program import Program
from openneutron.report.model import from_json
from openneutron.sandbox.supervisor import Finished, Limits, sandbox

_BYTES = "model"


def compile_in_sandbox(
    source: Any,
    limits: Limits,
    options: Mapping[str, Any],
    *,
    sizes: Mapping[str, Any] | None = None,
    calibration: Iterable[Any] | None = None,
    name: str = "",
) -> Program:
    """Compile a file, given by path or as bytes, in a process that can read no other file."""
    if not isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)):
        raise OptionError("isolated is for files", hint="a module or program is in this process already")
    given: dict[str, Any] = {"options": dict(options), "sizes": dict(sizes or {}), "name": name}
    files = {} if calibration is None else {"calibration.npz": _pack_batches(calibration)}
    reads: list[Any] = []
    if isinstance(source, (str, os.PathLike)):
        given["source"] = os.path.abspath(source)
        # Tensors of an ONNX model may lie in files beside it.
        reads = [Path(source).resolve().parent if Path(source).suffix == ".onnx" else source]
    else:
        data = bytes(source)
        files[f"{_BYTES}.{kind_of(data) or 'bin'}"] = data
    given["files"] = list(files)
    with sandbox("openneutron.sandbox.compile_child:serve", given, limits, files=files, reads=reads) as done:
        return _read_program(done)


def _pack_batches(calibration: Iterable[Any]) -> bytes:
    """Return the batches as an .npz file; array `2_0` is the first input of the third batch."""
    arrays: dict[str, Any] = {}
    for at, batch in enumerate(calibration):
        if isinstance(batch, Mapping):
            raise OptionError(
                "calibration for isolated compiles is by position", hint="give tuples of arrays or tensors"
            )
        for position, value in enumerate(batch if isinstance(batch, (tuple, list)) else (batch,)):
            arrays[f"{at}_{position}"] = np.asarray(value.detach() if hasattr(value, "detach") else value)
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _read_program(done: Finished) -> Program:
    names = done.names("intermediates")
    texts = {name: done.read(f"intermediates/{name}") for name in names}
    selections = [done.read(f"selections/{name}").decode() for name in done.names("selections")]
    data = done.read("program")
    kind = kind_of(data)
    if kind not in ("pte", "tflite"):
        raise FormatError("the sandbox left no program")
    report = from_json(done.read("report.json").decode("utf-8", "replace"), where="the sandbox's report")
    return Program(
        data,
        "pte" if kind == "pte" else "tflite",
        report,
        done.read("selection.c").decode(),
        {name: content if _is_binary(name) else content.decode() for name, content in texts.items()},
        kernel_selections=tuple(selections),
        loader=_run_pte if kind == "pte" else _run_litert,
    )


def _is_binary(name: str) -> bool:
    return name.endswith((".tflite", ".pte", ".bin"))


def _run_pte(data: bytes, where: str) -> Any:
    from openneutron.executorch.run.runtime import runner_of

    return runner_of(data, where)


def _run_litert(data: bytes, where: str) -> Any:
    from openneutron.run.runner import runner_of

    return runner_of(data, where)
