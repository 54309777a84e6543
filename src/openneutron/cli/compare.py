"""`openneutron compare`: two compiled files side by side, whoever compiled them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openneutron.cli.shared.completion import model_names, target_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from openneutron.cli.shared.contents import Contents

_GRAPH = "NeutronGraph"


@dataclass(frozen=True)
class Side:
    """One column; None is what the file does not say."""

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
    file_bytes: int


_LABELS = {
    "file": "file", "made_by": "compiled by", "target": "target", "operators_converted": "operators converted",
    "left": "left on the CPU", "neutron_graphs": "NeutronGraphs", "kernel_calls": "kernel calls",
    "scratch_bytes": "scratch bytes", "prefetch_bytes": "prefetch bytes", "weights_bytes": "weights bytes",
    "microcode_bytes": "microcode bytes", "kernels_bytes": "kernels bytes", "cycles": "estimated cycles",
    "milliseconds": "estimated ms",
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
            help="The chip to compile a model for; give two for one model on both, or one for each model.",
            autocompletion=target_names,
        ),
    ] = None,
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

    from openneutron import console

    with console.progress("comparing") as stage:
        sides = _sides(_columns(files, target or ["imxrt700"]), stage)
    if as_json:
        console.put(json.dumps([dataclasses.asdict(side) for side in sides], indent=2))
        return
    from rich.table import Table

    table = Table(header_style="cyan", box=None)
    for heading in ("", *(side.file for side in sides), "ratio"):
        table.add_column(heading, justify="left" if not heading else "right", overflow="fold")
    for field, label in _LABELS.items():
        if field != "file":
            pair = [getattr(side, field) for side in sides]
            table.add_row(label, *(_shown(value) for value in pair), _ratio(*pair))
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


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value) or "nothing"


def _ratio(ours: object, theirs: object) -> str:
    if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)) and theirs:
        return f"{ours / theirs:.2f}x"
    return ""


def _sides(columns: list[tuple[str, str]], stage: Callable[[str], None]) -> list[Side]:
    """Both columns; a model compiled here tells how many operators it had, which the other one is then measured by."""
    from openneutron.errors import OptionError

    found = [_column(model, target, stage) for model, target in columns]
    totals = {total for _, _, _, total in found if total is not None}
    for name, _, contents, _ in found:
        if not contents.graphs:
            raise OptionError("nothing of it runs on the NPU", where=name, hint="`openneutron compile` says why")
    # Operators can only be counted against each other where both files are of LiteRT and come from one model.
    common = totals.pop() if len(totals) == 1 and all(contents.operators for _, _, contents, _ in found) else None
    return [_side(name, contents, data, common if total is None else total) for name, data, contents, total in found]


def _column(model: str, target: str, stage: Callable[[str], None]) -> tuple[str, bytes, Contents, int | None]:
    """Name, bytes and contents of a compiled file, or of a model compiled now with the number of its LiteRT operators."""
    from openneutron.cli.shared.contents import contents_of
    from openneutron.cli.shared.loading import compile_source
    from openneutron.files import kind_of, read_file

    path = Path(model)
    if path.is_file() and kind_of(data := read_file(path)) != "zip":
        contents = contents_of(data, model)
        if contents.graphs or kind_of(data) != "tflite":
            return path.name, data, contents, None
    program, loaded = compile_source(model, lambda text: stage(f"{model} for {target}: {text}"), target=target)
    name = f"{loaded.name} for {target}, compiled now"
    total = program.report.totals.operators_total if program.kind == "tflite" else None
    return name, program.data, contents_of(program.data, loaded.name), total


def _side(name: str, found: Contents, data: bytes, total: int | None) -> Side:
    left = {label: count for label, count in found.operators.items() if _GRAPH not in label}
    graphs = found.graphs
    calls = [graph.calls for graph in graphs]
    known = [count for count in calls if count is not None]
    cycles, milliseconds = _cost(data, found)
    return Side(
        file=name,
        made_by=", ".join(dict.fromkeys("OpenNeutron" if graph.made_by == "open" else "NXP" for graph in graphs)),
        target=", ".join(dict.fromkeys(graph.target for graph in graphs if graph.target)) or "not stated",
        operators_converted=None if total is None else total - sum(left.values()),
        left=", ".join(f"{label} x{count}" if count > 1 else label for label, count in left.items()),
        neutron_graphs=len(graphs),
        kernel_calls=sum(known) if len(known) == len(calls) else None,
        scratch_bytes=max((graph.scratch_bytes for graph in graphs), default=0),
        prefetch_bytes=max((graph.prefetch_bytes for graph in graphs), default=0),
        weights_bytes=sum(graph.weights_bytes for graph in graphs),
        microcode_bytes=sum(graph.microcode_bytes for graph in graphs),
        kernels_bytes=sum(graph.kernels_bytes for graph in graphs),
        cycles=cycles,
        milliseconds=milliseconds,
        file_bytes=found.bytes,
    )


def _cost(data: bytes, found: Contents) -> tuple[int | None, float | None]:
    """Cycles by our machine model and the time they take at the target's clock; NXP's microcode cannot be priced."""
    from openneutron.cli.shared.blocks import blocks_of_file
    from openneutron.compiler.back.predict import predict
    from openneutron.machine import targets

    if any(graph.made_by != "open" for graph in found.graphs):
        return None, None
    cycles, milliseconds = 0, 0.0
    for blocks in blocks_of_file(data, found.file):
        program = blocks.program()
        target = targets.load(program.target)
        taken = predict(program, target)[1]
        cycles += taken
        milliseconds += target.milliseconds(taken)
    return cycles, milliseconds
