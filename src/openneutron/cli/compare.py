"""`openneutron compare`: two compiled files side by side, made by OpenNeutron or by NXP's converter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openneutron.cli.inputs.loading import CALIBRATION_HELP, SIZE_HELP, TRUST_HELP
from openneutron.cli.shared.completion import model_names, target_names
from openneutron.options import DEFAULT_TARGET

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openneutron.cli.inputs.contents import Contents
    from openneutron.compiler.back.predict import Timed
    from openneutron.report.model import Kernel, Stock

_GRAPH = "NeutronGraph"
_CONVERSIONS = "quantized_decomposed::"  # ExecuTorch's operators between float and stored numbers


@dataclass(frozen=True)
class Side:
    """One column of the comparison; a figure that the file does not have is None."""

    file: str
    made_by: str
    target: str
    operators_converted: int | None
    left: str
    neutron_graphs: int
    kernel_calls: int | None
    scratch_bytes: int
    prefetch_bytes: int
    weights_bytes: int
    microcode_bytes: int
    kernels_bytes: int
    cycles: int | None
    milliseconds: float | None
    milliseconds_low: float | None
    milliseconds_high: float | None
    stock_scratch_bytes: int | None
    stock_arena_bytes: int | None
    stock_milliseconds: float | None
    stock_milliseconds_low: float | None
    stock_milliseconds_high: float | None
    silicon: str | None
    file_bytes: int


_LABELS = {
    "file": "file", "made_by": "compiled by", "target": "target", "operators_converted": "operators converted",
    "left": "left on the CPU", "neutron_graphs": "NeutronGraphs", "kernel_calls": "kernel calls",
    "scratch_bytes": "scratch bytes", "prefetch_bytes": "prefetch bytes", "weights_bytes": "weights bytes",
    "microcode_bytes": "microcode bytes", "kernels_bytes": "kernels bytes", "cycles": "estimated cycles",
    "milliseconds": "estimated ms, NPU", "milliseconds_low": "  from", "milliseconds_high": "  to",
    "stock_scratch_bytes": "scratch bytes by NXP's converter", "stock_arena_bytes": "arena bytes by NXP's converter",
    "stock_milliseconds": "estimated ms on the board", "stock_milliseconds_low": "  from", "stock_milliseconds_high": "  to",
    "silicon": "outputs off by silicon's rounding",
    "file_bytes": "file bytes",
}  # fmt: skip


def compare_files(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="One or two: what `openneutron compile` takes, compiled here first, or compiled files, also NXP's.",
            autocompletion=model_names,
        ),
    ],
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHIP",
            help="The chip to compile a model for; give two for one model on both, or one for each model.",
            autocompletion=target_names,
        ),
    ] = None,
    rounding: Annotated[
        str, typer.Option(help="silicon: also run both with the board's 16-bit multipliers, assumed where not public.")
    ] = "exact",
    size: Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help=SIZE_HELP)] = None,
    calibration: Annotated[str, typer.Option(help=CALIBRATION_HELP)] = "",
    trust: Annotated[bool, typer.Option("--trust", help=TRUST_HELP)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare two compiles, two targets, or ours and NXP's file: operators, memory, code size, cycles.

    Of NXP's files only the container is read.

    Examples:

    openneutron compare cifarnet --target imxrt700 --target mcxn94x

    openneutron compare before.pte after.pte

    openneutron compare model.tflite converted_by_nxp.tflite --target mcxn94x
    """
    import dataclasses
    import json

    from openneutron.board.rounding import SILICON, check_rounding
    from openneutron.terminal import console

    silicon = check_rounding(rounding) == SILICON
    with console.progress("comparing") as stage:
        given = {"sizes": size or (), "calibration": calibration, "trust": trust}
        sides = _sides(_columns(files, target or [DEFAULT_TARGET]), stage, given, silicon)
    if as_json:
        console.put(json.dumps([dataclasses.asdict(side) for side in sides], indent=2))
        return
    from rich.table import Table

    table = Table(header_style="cyan", box=None)
    for heading in ("", *(side.file for side in sides), "ratio"):
        table.add_column(heading, justify="left" if not heading else "right", overflow="fold")
    for field, label in _LABELS.items():
        pair = [getattr(side, field) for side in sides]
        if field != "file" and any(value is not None for value in pair):
            table.add_row(label, *(_format_figure(value) for value in pair), _ratio(*pair))
    console.stdout().print(table)


def _columns(files: list[str], targets: list[str]) -> list[tuple[str, str]]:
    """Model and target of both columns."""
    from openneutron.errors import OptionError
    from openneutron.machine import targets as known

    for name in targets:
        known.load(name)
    if len(files) > 2 or len(targets) > 2:
        raise OptionError(f"there are {max(len(files), len(targets))} to compare", hint="give two")
    if len(files) == len(targets) == 1:
        hint = "name a second model, or a second --target for the same one"
        raise OptionError("there is only one to compare", where=files[0], hint=hint)
    if len(files) == 1:
        return [(files[0], name) for name in targets]
    return list(zip(files, targets * 2 if len(targets) == 1 else targets, strict=True))


def _format_figure(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value) or "nothing"


def _ratio(ours: object, theirs: object) -> str:
    if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)) and theirs:
        return f"{ours / theirs:.2f}x"
    return ""


def _sides(
    columns: list[tuple[str, str]], stage: Callable[[str], None], given: dict[str, Any], silicon: bool = False
) -> list[Side]:
    """Both columns; a model compiled here tells how many operators it had, which the other one is then measured by."""
    from openneutron.errors import OptionError

    found = [_column(model, target, stage, given) for model, target in columns]
    totals = {total for _, _, _, total, _ in found if total is not None}
    for name, _, contents, _, _ in found:
        if not contents.graphs:
            raise OptionError("nothing of it runs on the NPU", where=name, hint="`openneutron compile` says why")
    # Operators can only be counted against each other where both files are of LiteRT and come from one model.
    common = totals.pop() if len(totals) == 1 and all(contents.operators for _, _, contents, _, _ in found) else None
    return [
        _side(name, contents, data, common if total is None else total, stock, silicon)
        for name, data, contents, total, stock in found
    ]


def _column(
    model: str, target: str, stage: Callable[[str], None], given: dict[str, Any]
) -> tuple[str, bytes, Contents, int | None, Stock | None]:
    """Name, bytes and contents of a compiled file, or of a model compiled now.

    Of a model compiled now also the number of its LiteRT operators and what NXP's converter would do with it.
    """
    from openneutron.cli.inputs.contents import contents_of
    from openneutron.cli.inputs.loading import compile_source
    from openneutron.files import kind_of, read_file

    path = Path(model)
    if (
        path.is_file()
        and path.suffix not in (".onnx", ".pt2")
        and kind_of(data := read_file(path)) not in ("zip", "onnx")
    ):
        contents = contents_of(data, model)
        if contents.graphs or kind_of(data) != "tflite":
            return path.name, data, contents, None, None
    of_kind = {".onnx": ("sizes", "calibration"), ".pt2": ("calibration", "trust")}
    wanted = {name: given[name] for name in of_kind.get(path.suffix, ("calibration",))}
    if path.suffix == ".tflite" and not _is_float(path):
        wanted = {}
    program, loaded = compile_source(
        model, lambda text: stage(f"{model} for {target}: {text}"), target=target, **wanted
    )
    name = f"{loaded.name} for {target}, compiled now"
    total = program.report.totals.operators_total if program.kind == "tflite" else None
    return name, program.data, contents_of(program.data, loaded.name), total, program.report.stock


def _describe_cpu_operators(operators: dict[str, int]) -> str:
    """Operators on the CPU; conversions from and to float are counted, not listed: every .pte has them at its border."""
    conversions = sum(count for label, count in operators.items() if label.startswith(_CONVERSIONS))
    names = [
        f"{label} x{count}" if count > 1 else label
        for label, count in operators.items()
        if not label.startswith(_CONVERSIONS)
    ]
    return ", ".join([*names, *([f"{conversions} conversions from or to float"] if conversions else [])])


def _is_float(path: Path) -> bool:
    from openneutron.files import read_file
    from openneutron.litert.read import read_model
    from openneutron.quantize_litert.quantize import is_float

    return is_float(read_model(read_file(path), source=str(path)))


def _side(
    name: str, found: Contents, data: bytes, total: int | None, stock: Stock | None, silicon: bool = False
) -> Side:
    left = {label: count for label, count in found.operators.items() if _GRAPH not in label}
    graphs = found.graphs
    calls = [graph.calls for graph in graphs]
    known = [count for count in calls if count is not None]
    cycles, milliseconds, low, high = _cost(data, found)
    return Side(
        file=name,
        made_by=", ".join(dict.fromkeys("OpenNeutron" if graph.made_by == "open" else "NXP" for graph in graphs)),
        target=", ".join(dict.fromkeys(graph.target for graph in graphs if graph.target)) or "not stated",
        operators_converted=None if total is None else total - sum(left.values()),
        left=_describe_cpu_operators(left),
        neutron_graphs=len(graphs),
        kernel_calls=sum(known) if len(known) == len(calls) else None,
        scratch_bytes=max((graph.scratch_bytes for graph in graphs), default=0),
        prefetch_bytes=max((graph.prefetch_bytes for graph in graphs), default=0),
        weights_bytes=sum(graph.weights_bytes for graph in graphs),
        microcode_bytes=sum(graph.microcode_bytes for graph in graphs),
        kernels_bytes=sum(graph.kernels_bytes for graph in graphs),
        cycles=cycles,
        milliseconds=milliseconds,
        milliseconds_low=low,
        milliseconds_high=high,
        stock_scratch_bytes=None if stock is None else stock.scratch_bytes,
        stock_arena_bytes=None if stock is None else stock.arena_bytes,
        stock_milliseconds=None if stock is None else stock.milliseconds,
        stock_milliseconds_low=None if stock is None else stock.milliseconds_low,
        stock_milliseconds_high=None if stock is None else stock.milliseconds_high,
        silicon=silicon_difference(data, found.file) if silicon and cycles is not None else None,
        file_bytes=found.bytes,
    )


def silicon_difference(data: bytes, where: str) -> str:
    """How many output values change with the board's multipliers, on seeded random inputs.

    Example:
        >>> silicon_difference(Path("out.tflite").read_bytes(), "out.tflite")
        '2 of 10 values'
    """
    import numpy as np

    from openneutron.board.rounding import silicon_file
    from openneutron.cli.run import run_seeded

    exact, board = (run_seeded(one, where) for one in (data, silicon_file(data, where=where)))
    differ = sum(int(np.count_nonzero(exact[name] != board[name])) for name in exact)
    return f"{differ:,} of {sum(value.size for value in exact.values()):,} values"


def _cost(data: bytes, found: Contents) -> tuple[int | None, float | None, float | None, float | None]:
    """Cycles by our machine model, and the time they take with its interval; NXP's microcode cannot be priced."""
    from openneutron.board.answer import open_unexercised
    from openneutron.board.interval import interval
    from openneutron.cli.inputs.blocks import blocks_of_file
    from openneutron.compiler.back.predict import predict
    from openneutron.machine import targets

    if any(graph.made_by != "open" for graph in found.graphs):
        return None, None, None, None
    cycles = 0
    kernels: list[Kernel] = []
    for number, blocks in enumerate(blocks_of_file(data, found.file)):
        program = blocks.program()
        target = targets.load(program.target)
        events, taken = predict(program, target)
        kernels += _kernels(number, events)
        cycles += taken
    milliseconds = target.milliseconds(cycles)
    low, high = interval(milliseconds, unexercised=open_unexercised(target, tuple(kernels)))
    return cycles, milliseconds, low, high


def _kernels(graph: int, events: Sequence[Timed]) -> list[Kernel]:
    """What each node of a graph costs in all its calls."""
    from openneutron.report.model import Kernel

    calls: dict[int, list[Timed]] = {}
    for event in events:
        if event.lane == "array":
            calls.setdefault(event.node, []).append(event)
    return [
        Kernel(
            node=node, graph=graph, kernel=mine[0].kernel, name="", operators=(), output_shape=(), macs=0, calls=len(mine),
            cycles=sum(one.end - one.start for one in mine), compute_cycles=0, memory_cycles=0,
            overhead_cycles=sum(one.overhead for one in mine) >> 10, weight_bytes=0,
        )
        for node, mine in calls.items()
    ]  # fmt: skip
