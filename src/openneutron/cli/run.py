"""`openneutron run`: run a compiled file on this machine, and compare it bit by bit with the model it came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openneutron.cli.inputs.frames import FRONT_END_HELP, STREAM_HELP, Given, number_inputs
from openneutron.cli.inputs.loading import SANDBOX_HELP, SANDBOX_LIMITS_HELP

if TYPE_CHECKING:
    from openneutron.cli.shared.differences import Difference
    from openneutron.run.runner import RunResult


def run_file(
    file: Annotated[Path, typer.Argument(help="A .pte or .tflite file.")],
    input: Annotated[
        Path | None,
        typer.Option("--input", "-i", help=".npy for one input, .npz by name for several; random data without it."),
    ] = None,
    stream: Annotated[Path | None, typer.Option(help=STREAM_HELP)] = None,
    front_end: Annotated[str, typer.Option(help=FRONT_END_HELP)] = "",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the outputs there (.npz, or .npy for one).")
    ] = None,
    check: Annotated[
        Path | None, typer.Option(help="Run this .tflite in LiteRT's reference kernels; exit 1 unless 0 LSB apart.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="SEED", min=0, help="Seed of the random data.")] = 0,
    target: Annotated[
        str, typer.Option(metavar="CHIP", help="Refuse a file that was compiled for another target.")
    ] = "",
    rounding: Annotated[
        str, typer.Option(help="exact: LiteRT's. silicon: the board's 16-bit multipliers, assumed where not public.")
    ] = "exact",
    timeout: Annotated[
        int | None,
        typer.Option(metavar="SECONDS", min=0, help="Seconds that a graph or LiteRT's part may take; 0: any number."),
    ] = None,
    sandbox: Annotated[bool, typer.Option("--sandbox", help=SANDBOX_HELP)] = False,
    sandbox_limits: Annotated[str, typer.Option(help=SANDBOX_LIMITS_HELP)] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a file: NeutronGraphs in the simulator, everything else in the stock runtime's kernels.

    Examples:

    openneutron run cifarnet.pte --input image.npy --output scores.npz

    openneutron run out.tflite --check model.tflite

    openneutron run wake.tflite --stream frames.npz --check model.tflite

    openneutron run wake.tflite --stream hello.wav --front-end features.py:log_mel -o answers.npz
    """
    if sandbox or sandbox_limits:
        from openneutron.cli.shared.sandbox import run_in_sandbox

        values = {"seed": seed, "target": target, "rounding": rounding, "timeout": timeout, "as_json": as_json}
        paths = {"file": file, "input": input, "stream": stream, "check": check}
        code = run_in_sandbox(paths, values, output, sandbox_limits)
        if code:
            raise typer.Exit(code)
        return
    from openneutron.board.rounding import SILICON, check_rounding, silicon_file
    from openneutron.cli.main import DIFFERS
    from openneutron.environment import timeout_of
    from openneutron.errors import FormatError
    from openneutron.files import check_target, kind_of, read_file
    from openneutron.terminal import console

    check_rounding(rounding)
    given = Given(input, stream, front_end, seed)
    if output is not None:
        check_target(output, ".npz", ".npy", inputs=(file, input))
    data = read_file(file)
    kind = kind_of(data)
    if kind not in ("pte", "tflite"):
        sources = ("zip", "onnx")
        hint = (
            f"compile it: `openneutron compile {file}`" if kind in sources else "`openneutron inspect` says what it is"
        )
        raise FormatError("only .pte and .tflite files run", where=str(file), hint=hint)
    if target:
        _require_target(data, str(file), target)
    if rounding == SILICON:
        data = silicon_file(data, where=str(file))
    with console.progress("running"), timeout_of(timeout):
        run = _run_pte if kind == "pte" else _run_litert
        frames, result = run(data, str(file), given)
        differences, notes = (None, ()) if check is None else _check(check, frames, result.outputs, given.streams)
    if output is not None:
        from openneutron.analyze.data.arrays import write_arrays

        write_arrays(output, result.outputs)
    _print(result, differences, notes, check, as_json, frames=len(frames) if stream is not None else 0)
    if differences is not None and not all(one.equal for one in differences):
        raise typer.Exit(DIFFERS)


def _require_target(data: bytes, where: str, target: str) -> None:
    from openneutron.cli.inputs.blocks import blocks_of_file
    from openneutron.errors import OptionError
    from openneutron.machine import targets

    target = targets.load(targets.canonical_name(target)).name
    for blocks in blocks_of_file(data, where):
        found = blocks.program().target
        if found != target:
            hint = f"compile it with --target {target}"
            raise OptionError(f"it was compiled for {found}, not for {target}", where=blocks.where, hint=hint)


Frames = list[list[Any]]  # inputs of each run


def _run_litert(data: bytes, where: str, given: Given) -> tuple[Frames, RunResult]:
    from openneutron.run.runner import LiteRtRunner

    runner = LiteRtRunner(data, source=where)
    frames = given.frames(runner.inputs, where=where)
    return frames, _run_all(runner.run, frames, given.streams)


def _run_pte(data: bytes, where: str, given: Given) -> tuple[Frames, RunResult]:
    from openneutron.executorch.run.arrays import run_arrays
    from openneutron.executorch.run.runtime import load_program
    from openneutron.run.runner import RunResult

    program = load_program(data, where=where)
    frames = given.frames(number_inputs(program.inputs), where=where)

    def run(inputs: list[Any]) -> RunResult:
        results = run_arrays(program.run, inputs)
        return RunResult({f"output_{at}": value for at, value in enumerate(results)}, 0)

    return frames, _run_all(run, frames, given.streams)


def _run_all(run: Callable[[list[Any]], RunResult], frames: Frames, streams: bool) -> RunResult:
    from openneutron.run.stream import run_stream

    return run_stream(run, frames) if streams else run(frames[0])


def run_seeded(data: bytes, where: str, seed: int = 0) -> Mapping[str, Any]:
    """Outputs by name of a compiled file on seeded random inputs."""
    from openneutron.files import kind_of

    run = _run_pte if kind_of(data) == "pte" else _run_litert
    return run(data, where, Given(seed=seed))[1].outputs


def _check(
    reference: Path, frames: Frames, outputs: Mapping[str, Any], streams: bool
) -> tuple[list[Difference], tuple[str, ...]]:
    """How the outputs differ from the reference's, and what in it is not LiteRT's own kernel."""
    from openneutron.cli.shared.differences import compare
    from openneutron.errors import OptionError
    from openneutron.files import kind_of, read_file
    from openneutron.run.runner import LiteRtRunner

    where = str(reference)
    data = read_file(reference)
    hints = {"pte": "give the .tflite the file came from", "onnx": f"`openneutron verify {where}` compares every layer"}
    if kind_of(data) in hints:
        raise OptionError("--check takes a LiteRT model", where=where, hint=hints[kind_of(data)])
    runner = LiteRtRunner(data, source=where)
    if runner.neutron_graphs:
        raise OptionError("this model is compiled itself", where=where, hint="give the .tflite the file came from")
    return compare(outputs, _run_all(runner.run, frames, streams).outputs, where=where), runner.notes


def _print(
    result: RunResult,
    differences: list[Difference] | None,
    notes: tuple[str, ...],
    check: Path | None,
    as_json: bool,
    frames: int = 0,
) -> None:
    import dataclasses
    import json

    from openneutron.terminal import console

    if as_json:
        described = {name: {"dtype": str(v.dtype), "shape": list(v.shape)} for name, v in result.outputs.items()}
        verdict = None if differences is None else [dataclasses.asdict(one) for one in differences]
        shown = {"outputs": described, "cycles": result.cycles, "check": verdict, "notes": list(notes)}
        shown |= {"frames": frames} if frames else {}
        console.put(json.dumps(shown, indent=2))
        return
    screen = console.stdout()
    for name, value in result.outputs.items():
        screen.print(f"{name}: {_describe(value)}", markup=False)
    if result.cycles:
        screen.print(f"simulated cycles{' of the slowest frame' if frames else ''}: {result.cycles:,}")
    for one in differences or ():
        if one.equal:
            screen.print(f"{one.name}: 0 LSB from {check} on {one.elements:,} values", markup=False, style="green")
        else:
            text = f"{one.name}: {one.differing:,} of {one.elements:,} values differ from {check}, by {one.largest:g} at most"
            screen.print(text, markup=False, style="red")
    for note in notes:
        screen.print(f"note: {note}", markup=False)


def _describe(value: Any) -> str:
    """Type, shape, range and the first values."""
    shape = "x".join(map(str, value.shape)) or "scalar"
    if value.size == 0:
        return f"{value.dtype} {shape}"
    # Eight values show a small output whole and a large one's beginning.
    first = ", ".join(f"{one:.6g}" if value.dtype.kind == "f" else str(one) for one in value.reshape(-1)[:8])
    more = ", ..." if value.size > 8 else ""
    return f"{value.dtype} {shape}, {value.min():.6g} to {value.max():.6g}: {first}{more}"
