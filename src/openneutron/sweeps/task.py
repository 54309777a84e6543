"""The work of a worker: load and quantize a model once, then compile it for each variant. Failures are results.

Example:
    >>> shared = prepare(Work(model, {}), 600.0)
    >>> measure(shared, {"target": "mcxn94x"}, 600.0, report=False).row["status"]
    'ok'
"""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from openneutron.analyze.data.source import Data
from openneutron.api import compile
from openneutron.errors import InternalError, MissingExtraError, OpenNeutronError
from openneutron.executorch.capture.sources import Source, find
from openneutron.extras import pause_collector
from openneutron.program import Program
from openneutron.sweeps.figures import FIGURES, figures
from openneutron.sweeps.limit import TimeLimit, time_limit
from openneutron.sweeps.plan import QUANTIZING, Model
from openneutron.sweeps.scoring import NOT_SCORED, SCORES, Scored, score_compiled, score_float

# An incomplete row has its figures, and its accuracy from less than all data.
OK, INCOMPLETE, FAILED, TIMEOUT, LOST = "ok", "incomplete", "failed", "timeout", "lost"
# What a row has beside the variant it is about; a row without figures has None in their place.
COLUMNS = ("status", "reason", *FIGURES, *SCORES, "file_bytes", "sha256")
T = TypeVar("T")


@dataclass(frozen=True)
class Failure:
    """The reason why there are no figures. Only `lasting` failures are stored; a time limit or a full disk is not one."""

    status: str
    reason: str
    lasting: bool


@dataclass(frozen=True)
class Work:
    """A model to prepare, with the options that its quantized program depends on.

    `content` are the bytes of its file for workers that may not have the file.
    """

    model: Model
    quantizing: dict[str, Any]
    content: bytes = b""


@dataclass(frozen=True)
class Shared:
    """The input of all variants of a `Work`: a LiteRT file or a quantized program as bytes, or a failure."""

    name: str
    kind: str = ""
    data: bytes = b""
    sqnr: float | None = None
    notes: tuple[str, ...] = ()
    failure: Failure | None = None
    labelled: Data | None = None
    scored: Scored = NOT_SCORED


@dataclass(frozen=True)
class Outcome:
    """A row's figures, whether the store keeps them, and the HTML report where one was wanted."""

    row: dict[str, Any]
    lasting: bool = True
    report: str = field(default="", repr=False)


def prepare(work: Work, seconds: float, in_worker: bool = False) -> Shared:
    """Load a model and, if it comes from PyTorch or ONNX, quantize it; errors of the model become failures."""
    name = Path(work.model.source).name if Path(work.model.source).suffix else work.model.source
    found = _run_guarded(lambda: _prepare_shared(work, name), seconds, in_worker)
    return Shared(name, failure=found) if isinstance(found, Failure) else found


def measure(
    shared: Shared, options: dict[str, Any], seconds: float, *, report: bool, in_worker: bool = False
) -> Outcome:
    """Compile one variant; `options` are those of `openneutron.compile`."""
    if shared.failure is not None:
        return failure_outcome(shared.failure)
    found = _run_guarded(lambda: _measure_variant(shared, options, report), seconds, in_worker)
    return failure_outcome(found) if isinstance(found, Failure) else found


def failure_outcome(failure: Failure) -> Outcome:
    """Return the outcome of a failure."""
    return Outcome({"status": failure.status, "reason": failure.reason}, failure.lasting)


def _run_guarded(work: Callable[[], T], seconds: float, in_worker: bool) -> T | Failure:
    try:
        with time_limit(seconds, end_process=in_worker):
            return work()
    except TimeLimit:
        return Failure(TIMEOUT, f"not done after {seconds:g} s", lasting=False)
    except (InternalError, MissingExtraError, MemoryError) as error:
        return Failure(FAILED, str(error) or type(error).__name__, lasting=False)
    except OpenNeutronError as error:
        return Failure(FAILED, str(error), lasting=True)
    except Exception as error:
        return Failure(FAILED, f"unexpected {type(error).__name__}: {' '.join(str(error).split())}", lasting=False)


def _prepare_shared(work: Work, name: str) -> Shared:
    source = _source(work.model)
    here = Path(work.model.source)
    if work.content and not (here.is_file() and _digest(here.read_bytes()) == _digest(work.content)):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / here.name
            file.write_bytes(work.content)
            try:
                return _load(dataclasses.replace(source, text=str(file)), work, name)
            except OpenNeutronError as error:
                # The same sentence on every machine: the folder is gone when anyone reads it.
                raise type(error)(error.message, where=error.where.replace(str(file), name), hint=error.hint) from error
    return _load(source, work, name)


def _source(model: Model) -> Source:
    if Path(model.source).suffix in (".tflite", ".onnx", ".pt2") and not Path(model.source).is_file():
        kind: Any = Path(model.source).suffix[1:]
        found = Source(model.source, kind)
    else:
        found = find(model.source)
    return dataclasses.replace(
        found,
        sizes=dict(model.sizes),
        calibration=model.calibration,
        arguments=dict(model.arguments),
        trust=model.trust,
    )


def _load(source: Source, work: Work, name: str) -> Shared:
    if source.kind == "tflite":
        made = source.litert_model()
        notes = (f"quantized here by {made.made_by}",) if made.made_by else ()
        from openneutron.report.accuracy import worst_sqnr

        return Shared(name, "tflite", made.model, worst_sqnr(made.outputs), notes, labelled=work.model.data)
    from openneutron.terminal.quiet import quiet, without_torch_internals

    with quiet(), without_torch_internals():
        with pause_collector():
            from openneutron.executorch.upstream.load_exporter import load_exporter

            load_exporter()
            from openneutron.executorch.shared_program import quantize_to_bytes

        loaded = source.load()
        data, sqnr = quantize_to_bytes(loaded, **work.quantizing)
        given = work.model.data
        scored = NOT_SCORED if given is None else score_float(given, loaded, where=work.model.source)
    return Shared(name, "pt2", data, sqnr, loaded.notes, labelled=given, scored=scored)


def _measure_variant(shared: Shared, options: dict[str, Any], wanted: bool) -> Outcome:
    program = _compile_variant(shared, options)
    # Seconds differ from run to run; without them the same variant has the same bytes wherever it was compiled.
    report = dataclasses.replace(program.report, seconds={})
    page = ""
    if wanted:
        from openneutron.report.html import page as html

        page = html(report)
    scored = NOT_SCORED
    if shared.labelled is not None:
        scored = score_compiled(shared.labelled, program.data, where=shared.name)
    row = {
        "status": INCOMPLETE if scored.problem else OK,
        "reason": scored.problem,
        **figures(report),
        **shared.scored.row,
        **scored.row,
        "file_bytes": len(program.data),
        "sha256": _digest(program.data),
    }
    # What the data lacks today may be there tomorrow.
    return Outcome(row, lasting=not scored.problem, report=page)


def _compile_variant(shared: Shared, options: dict[str, Any]) -> Program:
    if shared.kind == "tflite":
        return _with_notes(compile(shared.data, name=shared.name, **options), shared)
    from openneutron.terminal.quiet import quiet

    with quiet(), pause_collector():  # another process than the one that quantized imports torch here
        from openneutron.executorch.shared_program import program_of

    rest = {name: value for name, value in options.items() if name == "recipe" or name not in QUANTIZING}
    return _with_notes(compile(program_of(shared.data), name=shared.name, **rest), shared)


def _with_notes(program: Program, shared: Shared) -> Program:
    """Add what the quantizer reported to the program's report."""
    report = dataclasses.replace(program.report, output_sqnr=shared.sqnr, notes=(*program.report.notes, *shared.notes))
    return dataclasses.replace(program, report=report)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
