"""`--sandbox`: run `openneutron compile` and `openneutron run` in a process that can read only the files they name.

The functions `serve_…` are called inside the sandbox, all others outside.
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
    from openneutron.sandbox.supervisor import Finished

# Folders of the results: files beside the output or in the working directory, and files that go elsewhere.
_HERE, _REPORT, _CERTIFICATE, _INTERMEDIATES = "here", "report", "certificate", "intermediates"


def compile_in_sandbox(request: Request) -> bool:
    """Run `openneutron compile` in a sandbox; return what `run_compile` returns."""
    from openneutron.files import check_replaceable, check_target, make_folder, write_file
    from openneutron.sandbox.supervisor import limits_of, sandbox
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


def run_in_sandbox(
    paths: Mapping[str, Path | None], values: Mapping[str, Any], output: Path | None, limits: str
) -> int:
    """Run `openneutron run` in a sandbox and return its exit code. `paths` are the files it reads, by option."""
    from openneutron.files import check_target, write_file
    from openneutron.sandbox.supervisor import limits_of, sandbox
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
    """Inside the sandbox: compile, in the folder of the results."""
    from openneutron.cli.shared.compiling import Request, run_compile
    from openneutron.options import check_options
    from openneutron.terminal.quiet import quiet

    results = _results(folder)
    for name in ("output", "report", "certificate", "intermediates"):
        request[name] = None if request[name] is None else results / request[name]
    request |= {"size": tuple(request["size"]), "options": check_options(request["options"])}
    with quiet():
        return run_compile(Request(**request))


def serve_run(folder: Path, paths: dict[str, str | None], values: dict[str, Any]) -> int:
    """Inside the sandbox: run, in the folder of the results."""
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
    """Create the folders of the results and enter the one for files with default names; return the top one."""
    from openneutron.sandbox.supervisor import RESULTS

    for part in (_HERE, _REPORT, _CERTIFICATE):
        (folder / RESULTS / part).mkdir()
    os.chdir(folder / RESULTS / _HERE)
    return folder / RESULTS


def _absolute(text: str) -> str:
    """Return the absolute path of a file; names of zoo models stay as they are, everything else is an error."""
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
