"""NXP's own converter: eiq_neutron_sdk, run isolated in a subprocess with a time-out, with its log.

Each conversion has a private folder that is also the SDK's working directory, so files that it writes there (kernel selection,
dumps) cannot collide with those of another export, and nothing appears in the user's folder.

Example:
    >>> result = convert_with_sdk(Path("model.tflite").read_bytes(), Options(target="imxrt700", converter="nxp"))
    >>> result.report.notes[0]
    "NXP's converter gives no cycle estimate"
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from openneutron.errors import ConverterError, OpenNeutronError, OptionError
from openneutron.litert.read import read_model
from openneutron.nxp import worker
from openneutron.nxp.result import finish
from openneutron.options import SCHEMA, Options
from openneutron.result import Result
from openneutron.sandbox.process import describe_end, kill, start

GET_SDK = (
    f"install the Python package {worker.PACKAGE} of NXP's eIQ Neutron SDK, from NXP's package index or NXP's website "
    "under its licence; --converter open works without it (for the simulator, not for NXP silicon)"
)
_LOG = "log.txt"
_SELECTION = "_kernel_selection.c"
_TAIL_LINES = 20  # lines of the log that an error shows: NXP's summary and the lines before a crash fit; `log` has all


class SdkMissingError(OpenNeutronError):
    """NXP's SDK is not installed, or its installation does not work; `log` is the output of importing it."""

    def __init__(self, message: str, *, where: str = "", hint: str = GET_SDK, log: str = "") -> None:
        super().__init__(message, where=where, hint=hint)
        self.log = log


class SdkOptionError(OptionError):
    """NXP's SDK does not have this option or target; `log` is its output so far."""

    def __init__(self, message: str, *, where: str = "", hint: str = "", log: str = "") -> None:
        super().__init__(message, where=where, hint=hint)
        self.log = log


class SdkError(ConverterError):
    """NXP's converter failed, crashed, timed out or returned an invalid result; `log` is its output."""

    def __init__(self, message: str, *, where: str = "", hint: str = "", log: str = "") -> None:
        super().__init__(message, where=where, hint=hint)
        self.log = log

    def __str__(self) -> str:
        lines = self.log.strip().splitlines()
        if not lines:
            return f"{super().__str__()}\n(NXP's converter printed nothing)"
        shown = "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:])
        return f"{super().__str__()}\nEnd of its log ({len(lines)} lines):\n{shown}"


@dataclass(frozen=True)
class _Run:
    """The results of one run of the worker."""

    answer: dict[str, Any]
    converted: bytes
    log: str
    selection: str
    dumps: dict[str, str]


def convert_with_sdk(model: bytes, options: Options) -> Result:
    """Convert with NXP's SDK; operators it leaves out are in the report, its log is in the result.

    Example:
        >>> convert_with_sdk(data, Options(target="imxrt700", converter="nxp", extra_flags=("verbose",))).log
    """
    _check(options)
    original = read_model(model, source=options.source)
    began = time.perf_counter()
    run = _run(model, options)
    try:
        made, report = finish(original, run.converted, run.answer, options)
    except OpenNeutronError as error:
        raise SdkError(error.message, where=error.where or options.source, hint=error.hint, log=run.log) from error
    if options.dump_kernel_selection_code and not run.selection:
        report = replace(report, notes=(*report.notes, "NXP's converter wrote no kernel selection for this target"))
    return Result(
        model=made,
        report=replace(report, seconds={"converter": time.perf_counter() - began}),
        log=run.log,
        kernel_selection_code=run.selection,
        intermediates=run.dumps,
    )


def _check(options: Options) -> None:
    """Refuse options that NXP's converter does not have, instead of dropping them silently."""
    if options.timeout_seconds < 1:
        raise OptionError(f"the time-out is {options.timeout_seconds} seconds", hint="give at least 1")
    for name, option in SCHEMA.items():
        if "nxp" not in option.converters and getattr(options, name) != option.default:
            raise OptionError(
                f"NXP's converter cannot be given {name}={getattr(options, name)!r}",
                hint="its own options go through extra_flags, as name or name=value",
            )


def sdk_options(options: Options) -> list[dict[str, Any]]:
    """Return attributes to set on the SDK's compilation options, in order; `optional` ones may be absent in an SDK version.

    Example:
        >>> sdk_options(Options(use_profiling=True))[1]
        {'name': 'useProfiling', 'value': True, 'optional': False}
    """
    # Their defaults may leave small partitions on the CPU; as with the open converter, one operator is worth a graph.
    smallest = options.minimum_operators_per_graph
    wanted: list[tuple[str, Any, bool]] = [(SCHEMA["minimum_operators_per_graph"].sdk, smallest, smallest == 1)]
    switches = [one for one in SCHEMA.values() if one.sdk and one.kind == "switch"]
    wanted += [(one.sdk, True, False) for one in switches if getattr(options, one.name)]
    if options.dump_intermediates:
        wanted += [(name, True, True) for name in ("dumpAfterImport", "dumpAfterGenerate", "dumpMicrocode")]
    if options.passes_off:
        wanted.append((SCHEMA["passes_off"].sdk, ",".join(options.passes_off), False))
    for flag in (word for text in options.extra_flags for word in text.split()):
        name, _, value = flag.lstrip("-").partition("=")
        if not name.isidentifier() or name.startswith("_"):
            raise OptionError(f"the extra flag {flag!r} names no option", hint="write name or name=value")
        wanted.append((name, value, False))
    return [{"name": name, "value": value, "optional": optional} for name, value, optional in wanted]


def _run(model: bytes, options: Options) -> _Run:
    request = {"target": options.target, "options": sdk_options(options)}
    with tempfile.TemporaryDirectory(prefix="openneutron-nxp-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / worker.REQUEST).write_text(json.dumps(request), "utf-8")
        (folder / worker.MODEL).write_bytes(model)
        status = _execute(folder, options)
        log = _read_text(folder / _LOG)
        answer = _answer(folder, status, log, options)
        return _Run(
            answer=answer,
            converted=(folder / worker.CONVERTED).read_bytes(),
            log=log,
            selection=_read_text(folder / _SELECTION),
            dumps=_dumps(folder) if options.dump_intermediates else {},
        )


def _execute(folder: Path, options: Options) -> int:
    """Run the worker to its end; returns its exit status, negative for a signal."""
    with (folder / _LOG).open("wb") as log:
        process = start(worker.__name__, str(folder), cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            return process.wait(options.timeout_seconds)
        except subprocess.TimeoutExpired:
            kill(process)
            raise SdkError(
                f"NXP's converter did not finish within {options.timeout_seconds} seconds and was stopped",
                where=options.source,
                hint="raise the time-out, or choose its heuristic optimization through extra_flags",
                log=_read_text(folder / _LOG),
            ) from None
        except BaseException:
            kill(process)
            raise


def _answer(folder: Path, status: int, log: str, options: Options) -> dict[str, Any]:
    path = folder / worker.ANSWER
    if not path.exists():
        how = describe_end(status) if status < 0 else f"{describe_end(status)} before it was done"
        raise SdkError(
            f"NXP's converter {how}",
            where=options.source,
            hint="try it without single operators, or with --converter open",
            log=log,
        )
    answer: dict[str, Any] = json.loads(path.read_text("utf-8"))
    kind = answer["kind"]
    if kind == "ok":
        return answer
    message, hint = answer["message"], answer["hint"]
    if kind == "missing":
        raise SdkMissingError(message, hint=GET_SDK, log=log)
    if kind == "broken":
        raise SdkMissingError(message, hint=hint or GET_SDK, log=log)
    if kind == "option":
        raise SdkOptionError(message, where=options.source, hint=hint, log=log)
    raise SdkError(f"NXP's converter failed: {message}", where=options.source, hint=hint, log=log)


def _read_text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""


def _dumps(folder: Path) -> dict[str, str]:
    """Return the text files that the SDK wrote beside the model."""
    ours = {worker.REQUEST, worker.MODEL, worker.ANSWER, worker.CONVERTED, _LOG, _SELECTION}
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in ours:
            with suppress(UnicodeDecodeError):
                found[name] = path.read_bytes().decode("utf-8")
    return found
