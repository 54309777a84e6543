"""`--sandbox`: the command's work in a process that has nothing but the files it is given, its results brought here.

The first functions are called on our side, the `serve_` ones in the sandbox.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openneutron.cli.shared.compiling import Request
    from openneutron.isolate.sandbox import Finished

# Folders of the results: what appears beside the output or in the working directory, and what has a place of its own.
_HERE, _REPORT, _CERTIFICATE, _INTERMEDIATES = "here", "report", "certificate", "intermediates"


def compile_sandboxed(request: Request) -> bool:
    """`openneutron compile` in a sandbox; its answer."""
    from openneutron.files import check_replaceable, check_target, make_folder, write_file
    from openneutron.isolate.sandbox import limits_of, sandbox
    from openneutron.terminal import console

    r = request
    limits = limits_of(r.sandbox_limits)
    for path in (r.output, r.certificate, r.report):
        if path is not None:
            check_target(path, inputs=(r.source, r.calibration))
            if not r.force:
                check_replaceable(path)
    source, calibration = _absolute(r.source), _absolute(r.calibration)
    given = dataclasses.asdict(dataclasses.replace(r, source=source, calibration=calibration, force=True))
    for name, folder in (("output", _HERE), ("report", _REPORT), ("certificate", _CERTIFICATE)):
        given[name] = f"{folder}/{given[name].name}" if given[name] is not None else None
    given["intermediates"] = _INTERMEDIATES if r.intermediates is not None else None
    given.pop("sandbox")
    given.pop("sandbox_limits")
    reads = [Path(source).parent if source.endswith(".onnx") else source, calibration]
    with (
        console.progress("compiling in a sandbox"),
        sandbox(f"{__name__}:serve_compile", {"request": given}, limits, reads=reads) as done,
    ):
        places = {_HERE: (r.output or Path("x")).parent, _INTERMEDIATES: r.intermediates}
        places |= {_REPORT: r.report and r.report.parent, _CERTIFICATE: r.certificate and r.certificate.parent}
        for folder, place in places.items():
            for name in done.names(folder) if place is not None else ():
                target = Path(place or ".", name)
                make_folder(target.parent)
                write_file(target, done.read(f"{folder}/{name}"))
        _show(done)
        return bool(done.value)


def run_sandboxed(paths: Mapping[str, Path | None], values: Mapping[str, Any], output: Path | None, limits: str) -> int:
    """`openneutron run` in a sandbox; its exit code. `paths` are the files it reads, by option."""
    from openneutron.files import check_target, write_file
    from openneutron.isolate.sandbox import limits_of, sandbox
    from openneutron.terminal import console

    if output is not None:
        check_target(output, ".npz", ".npy", inputs=paths.values())
    given = {name: None if path is None else os.path.abspath(path) for name, path in paths.items()}
    request = {"paths": {**given, "output": output and f"{_HERE}/{output.name}"}, "values": dict(values)}
    reads = list(paths.values())
    with (
        console.progress("running in a sandbox"),
        sandbox(f"{__name__}:serve_run", request, limits_of(limits), reads=reads) as done,
    ):
        if output is not None:
            write_file(output, done.read(f"{_HERE}/{output.name}"))
        _show(done)
        return int(done.value)


def serve_compile(folder: Path, request: dict[str, Any]) -> bool:
    """In the sandbox: compile, with the results as the working directory."""
    from openneutron.cli.shared.compiling import Request, run_compile
    from openneutron.options import checked
    from openneutron.terminal.quiet import quiet

    results = _results(folder)
    for name in ("output", "report", "certificate", "intermediates"):
        request[name] = None if request[name] is None else results / request[name]
    request |= {"size": tuple(request["size"]), "options": checked(request["options"])}
    with quiet():
        return run_compile(Request(**request))


def serve_run(folder: Path, paths: dict[str, str | None], values: dict[str, Any]) -> int:
    """In the sandbox: run, with the results as the working directory."""
    import typer

    from openneutron.cli.run import run_file
    from openneutron.terminal.quiet import quiet

    results = _results(folder)
    given: dict[str, Any] = {name: None if path is None else Path(results, path) for name, path in paths.items()}
    try:
        with quiet():
            run_file(**given, **values)
    except typer.Exit as left:
        return left.exit_code
    return 0


def _results(folder: Path) -> Path:
    """The folder of the results, with its parts; files without a name of their own are made in the working directory."""
    from openneutron.isolate.sandbox import RESULTS

    for part in (_HERE, _REPORT, _CERTIFICATE):
        (folder / RESULTS / part).mkdir()
    os.chdir(folder / RESULTS / _HERE)
    return folder / RESULTS


def _absolute(text: str) -> str:
    """A file's whole path; a sandbox takes nothing else but models of the zoo."""
    from openneutron import zoo
    from openneutron.errors import OptionError

    if not text or text in zoo.names():
        return text
    if not Path(text).exists():
        raise OptionError("a sandbox is for files, and there is none of this name", where=text)
    return os.path.abspath(text)


def _show(done: Finished) -> None:
    from openneutron.terminal import console

    console.put(done.out.rstrip("\n"))
    if done.missing:
        print(f"openneutron: this system's sandbox lacks {' and '.join(done.missing)}", file=sys.stderr)
