"""The studio's work on one model: fits, compile, changes, run, pair, contents.

Each function takes paths and plain values, writes its files into the folder `out`, and returns what JSON can hold. `serve` is
the entry for a sandboxed process; in Pyodide the functions are called directly.

Example:
    >>> compile_variant(Path("out"), print, {"source": "model.tflite"}, {"target": "mcxn94x"})["kind"]
    'tflite'
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from openneutron.errors import OptionError
from openneutron.report.model import Report

Stage = Callable[[str], None]
PROGRAM, REPORT, PAGE, SELECTION, PAIR, OUTPUTS, PROJECT = (
    "program", "report.json", "report.html", "kernel_selection.c", "pair.html", "outputs.npz", "project.zip",
)  # fmt: skip
PROGRESS = "progress.txt"
SHOWN_VALUES = 1000  # of an output on the page; the file has all


def serve(folder: Path, work: str, given: Mapping[str, Any]) -> Any:
    """Do the work of that name in a sandbox; its stages go into a file that the parent reads."""
    from openneutron.sandbox.supervisor import RESULTS
    from openneutron.terminal.quiet import quiet

    def stage(text: str) -> None:
        (folder / PROGRESS).write_text(text, "utf-8")

    given = dict(given)
    if given.get("arrays"):  # lies in the sandbox's own folder
        given["arrays"] = str(folder / given["arrays"])
    with quiet():
        return WORK[work](folder / RESULTS, stage, **given)


def judge_chips(out: Path, stage: Stage, model: Mapping[str, Any], chips: Sequence[str]) -> dict[str, Any]:
    """Return what the model needs on each chip, by NXP's converter and in the open schedule."""
    from openneutron.analyze.fits import Limits
    from openneutron.cli.shared.fitting import fit_rows

    rows = fit_rows(_path(model), chips, Limits(), stage, try_changes=False, **_loading_options(model))
    return {"rows": [dataclasses.asdict(row) for row in rows]}


def try_changes(
    out: Path, stage: Stage, model: Mapping[str, Any], chip: str, limits: Mapping[str, float]
) -> dict[str, Any]:
    """Return the rows of one chip under the limits of the page, the changes worth telling, and how many were tried."""
    from openneutron.analyze.fits import Limits
    from openneutron.cli.shared.fitting import fit_rows, worth_telling

    asked = Limits(int(limits["sram"]), int(limits["flash"]), float(limits["milliseconds"]))
    rows = fit_rows(_path(model), [chip], asked, stage, **_loading_options(model))
    shown = [
        {**dataclasses.asdict(replace(row, changes=tuple(worth_telling(row)))), "tried": len(row.changes)}
        for row in rows
    ]
    return {"rows": shown}


def compile_variant(out: Path, stage: Stage, model: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Compile with options of `openneutron.compile`; write the program, its report and its kernel selection."""
    from openneutron.cli.inputs.loading import compile_source

    program, _ = compile_source(_path(model), stage, dump_intermediates=True, **_loading_options(model), **options)
    (out / PROGRAM).write_bytes(program.data)
    if program.kernel_selection:
        (out / SELECTION).write_text(program.kernel_selection, "utf-8")
    return {"kind": program.kind, **_write_report(out, program.report), "inputs": _inputs(program.data)}


def advise(
    out: Path, stage: Stage, model: Mapping[str, Any], options: Mapping[str, Any], accuracy: bool
) -> dict[str, Any]:
    """Compile with every change worth trying; write the report with them and return them ranked."""
    from openneutron.cli.inputs.loading import compile_source
    from openneutron.cli.shared.reporting import complete_report
    from openneutron.report.html.advice import advice

    program, loaded = compile_source(_path(model), stage, dump_intermediates=True, **_loading_options(model), **options)
    report = complete_report(program, loaded, options, stage, accuracy=accuracy)
    offers = [
        {
            **dataclasses.asdict(one.what_if), "time": one.time, "memory": one.memory, "accuracy": one.accuracy,
            "helps": one.helps, "verdict": one.verdict,
        }
        for one in advice(report)
    ]  # fmt: skip
    return {**_write_report(out, report), "changes": offers}


def pair(out: Path, stage: Stage, first: str, second: str) -> dict[str, Any]:
    """Write the page of two reports side by side and return the figures that differ."""
    from openneutron.files import read_file
    from openneutron.report.html import pair_page
    from openneutron.report.html.pair import lines
    from openneutron.report.model import from_json

    stage("comparing")
    reports = [from_json(read_file(one).decode("utf-8", "replace"), where=Path(one).name) for one in (first, second)]
    (out / PAIR).write_text(pair_page(reports[0], reports[1]), "utf-8")
    return {"lines": [dataclasses.asdict(line) for line in lines(reports[0], reports[1])]}


def look_into(out: Path, stage: Stage, model: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a compiled file holds, and copy it as the program of a variant."""
    from openneutron.cli.inputs.contents import contents_of
    from openneutron.files import kind_of, read_file

    stage("reading")
    data = read_file(_path(model))
    found = contents_of(data, str(model["name"]))
    (out / PROGRAM).write_bytes(data)
    return {"kind": kind_of(data), "contents": dataclasses.asdict(found), "inputs": _inputs(data)}


def run_variant(
    out: Path,
    stage: Stage,
    program: str,
    name: str,
    arrays: str,
    seed: int,
    model: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Run a compiled file on the arrays of a file ("": random ones), and check it against LiteRT's reference kernels.

    `model` is the source to check against, None for no check. Floats given for a quantized input are quantized.
    """
    from openneutron.analyze.data.arrays import write_arrays
    from openneutron.files import kind_of, read_file

    data = read_file(program)
    tensors = _tensors(data, name)
    given = _given_inputs(tensors, arrays, seed, name)
    stage("running")
    outputs, cycles = (_run_pte if kind_of(data) == "pte" else _run_litert)(data, name, given)
    write_arrays(out / OUTPUTS, outputs)
    shown = [
        {
            "name": key, "dtype": str(value.dtype), "shape": list(value.shape), "size": int(value.size),
            "values": [_plain(one) for one in value.reshape(-1)[:SHOWN_VALUES]],
        }
        for key, value in outputs.items()
    ]  # fmt: skip
    check = None
    if model is not None and kind_of(data) == "tflite":
        stage("checking against LiteRT's reference kernels")
        check = _check_against_source(_path(model), given, outputs)
    elif model is not None:
        check = _check_layers(stage, model, options or {})
    return {"outputs": shown, "cycles": int(cycles), "check": check}


def make_project(out: Path, stage: Stage, program: str, name: str, platform: str, board: str) -> dict[str, Any]:
    """Write the project of a compiled file for a board as a zip; return what it takes of the board's memory."""
    import zipfile

    from openneutron.files import kind_of, read_file
    from openneutron.program import Program
    from openneutron.project.make import make

    data = read_file(program)
    command = f"openneutron project {name} --for {platform} --board {board}"
    made = Program(data, "pte" if kind_of(data) == "pte" else "tflite", Report(source=name), loader=_no_loader)
    found = make(made, platform=platform, board=board, command=command, progress=stage)
    with zipfile.ZipFile(out / PROJECT, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in found.files.items():
            archive.writestr(path, content)
    return {
        "board": found.board.description, "flash": found.sizes.flash_bytes, "ram": found.sizes.ram_bytes,
        "flash_there": found.board.flash.bytes, "ram_there": found.board.ram.bytes, "notes": list(found.notes),
    }  # fmt: skip


def _no_loader(data: bytes, where: str) -> Any:
    raise AssertionError("a program that is only read")


def _check_against_source(source: str, given: list[Any], outputs: Mapping[str, Any]) -> dict[str, Any]:
    from openneutron.cli.shared.differences import compare
    from openneutron.files import read_file
    from openneutron.run.runner import LiteRtRunner

    runner = LiteRtRunner(read_file(source), source=Path(source).name)
    found = compare(outputs, runner.run(given).outputs, where=Path(source).name)
    return {
        "what": "outputs",
        "against": "LiteRT's reference kernels",
        "largest": max((one.largest for one in found), default=0.0),
        "elements": sum(one.elements for one in found),
        "differing": sum(one.differing for one in found),
        "notes": list(runner.notes),
    }


def _check_layers(stage: Stage, model: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Compare each layer of a program from PyTorch, whose delegates' LiteRT models are the reference."""
    from openneutron.analyze.exactness import with_exactness
    from openneutron.cli.inputs.loading import compile_source
    from openneutron.cli.shared.reporting import litert_models
    from openneutron.options import Options

    program, loaded = compile_source(_path(model), stage, dump_intermediates=True, **_loading_options(model), **options)
    compiled_with = Options(source=loaded.name, **options)
    report = with_exactness(program.report, litert_models(program, loaded), compiled_with, stage)
    known = [kernel.lsb for kernel in report.kernels if kernel.lsb is not None]
    return {
        "what": "layers on random data",
        "against": "LiteRT's reference kernels",
        "largest": max(known, default=0.0),
        "elements": len(known),
        "differing": sum(lsb > 0 for lsb in known),
        "notes": [note for note in report.notes if note not in program.report.notes],
    }


def _run_litert(data: bytes, name: str, given: list[Any]) -> tuple[dict[str, Any], int]:
    from openneutron.run.runner import LiteRtRunner

    found = LiteRtRunner(data, source=name).run(given)
    return found.outputs, found.cycles


def _run_pte(data: bytes, name: str, given: list[Any]) -> tuple[dict[str, Any], int]:
    from openneutron.executorch.run.arrays import run_arrays
    from openneutron.executorch.run.runtime import load_program

    results = run_arrays(load_program(data, where=name).run, given)
    return {f"output_{at}": value for at, value in enumerate(results)}, 0


def _given_inputs(tensors: Sequence[Any], arrays: str, seed: int, name: str) -> list[Any]:
    from openneutron.analyze.data.arrays import read_arrays
    from openneutron.run.given import bind_inputs, random_inputs

    if not arrays:
        return random_inputs(tensors, seed=seed)
    found = read_arrays(Path(arrays))
    named = found if isinstance(found, dict) else dict(zip((one.name for one in tensors), found, strict=False))
    if not isinstance(found, dict) and len(found) != len(tensors):
        raise OptionError(f"{len(found)} arrays were given, the model takes {len(tensors)}", where=name)
    by_name = {tensor.name: tensor for tensor in tensors}
    return bind_inputs(tensors, {key: _fit_array(value, by_name.get(key)) for key, value in named.items()}, source=name)


def _fit_array(value: Any, tensor: Any) -> Any:
    """Give an array the tensor's shape if it has as many elements, and quantize floats for a quantized tensor."""
    import numpy as np

    if tensor is None:
        return value
    if value.size == int(np.prod(tensor.shape)):
        value = value.reshape(tensor.shape)
    scaled = tensor.quantization is not None and len(tensor.quantization.scale) == 1
    wanted = tensor.dtype.numpy
    if value.dtype.kind == "f" and wanted.kind in "iu" and scaled:
        scale, zero_point = tensor.quantization.scalar
        limits = np.iinfo(wanted)
        return np.clip(np.rint(value / scale) + zero_point, limits.min, limits.max).astype(wanted)
    if value.dtype.kind == "f" and wanted.kind == "f":
        return value.astype(wanted)
    return value


def _tensors(data: bytes, name: str) -> list[Any]:
    from openneutron.cli.inputs.frames import inputs_of

    return inputs_of(data, name)


def _inputs(data: bytes) -> list[dict[str, Any]]:
    """Describe the inputs; `low` and `high` are the real values at the ends of a quantized type's range."""
    import numpy as np

    found = []
    for tensor in _tensors(data, "the program"):
        row: dict[str, Any] = {"name": tensor.name, "dtype": str(tensor.dtype.numpy), "shape": list(tensor.shape)}
        quantized = tensor.quantization is not None and len(tensor.quantization.scale) == 1
        if quantized and tensor.dtype.numpy.kind in "iu":
            scale, zero_point = tensor.quantization.scalar
            limits = np.iinfo(tensor.dtype.numpy)
            row |= {"low": float((limits.min - zero_point) * scale), "high": float((limits.max - zero_point) * scale)}
        found.append(row)
    return found


def _write_report(out: Path, report: Report) -> dict[str, Any]:
    """Write the report as data and as a page; return its most important figures."""
    from openneutron.report.facts import facts, node_counts
    from openneutron.report.fits import stored_bytes, warnings_of
    from openneutron.report.html import page
    from openneutron.report.model import to_json

    (out / REPORT).write_text(to_json(report), "utf-8")
    (out / PAGE).write_text(page(report), "utf-8")
    whole, totals, counts = report.whole, report.totals, node_counts(report)
    times: Any = whole if whole.recipe and whole.timed else totals
    return {
        "facts": [list(row) for row in facts(report)],
        "milliseconds": times.milliseconds,
        "milliseconds_low": times.milliseconds_low,
        "milliseconds_high": times.milliseconds_high,
        "memory": whole.memory_bytes if whole.recipe else totals.runtime_bytes or totals.peak_bytes,
        "flash": stored_bytes(report),
        "cycles": totals.cycles,
        "on_npu": [counts.delegated, counts.inner],
        "warnings": warnings_of(report),
        "target": report.target,
    }


def _path(model: Mapping[str, Any]) -> str:
    return str(model["source"])


def _loading_options(model: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "sizes": tuple(model.get("sizes", ())),
        "calibration": str(model.get("calibration", "")),
        "trust": bool(model.get("trust", False)),
    }


def _plain(value: Any) -> float | int | str:
    """A number for JSON, which has no NaN and no infinities."""
    if value.dtype.kind in "iub":
        return int(value)
    number = float(value)
    return number if number - number == 0 else str(number)


WORK: dict[str, Callable[..., dict[str, Any]]] = {
    "fits": judge_chips,
    "help": try_changes,
    "compile": compile_variant,
    "changes": advise,
    "pair": pair,
    "open": look_into,
    "run": run_variant,
    "project": make_project,
}
