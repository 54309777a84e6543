"""`openneutron compare`: two compiled files side by side, whoever compiled them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from openneutron.cli.contents import Contents

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
    file_bytes: int


_LABELS = {
    "file": "file", "made_by": "compiled by", "target": "target", "operators_converted": "operators converted",
    "left": "left on the CPU", "neutron_graphs": "NeutronGraphs", "kernel_calls": "kernel calls",
    "scratch_bytes": "scratch bytes", "prefetch_bytes": "prefetch bytes", "weights_bytes": "weights bytes",
    "microcode_bytes": "microcode bytes", "kernels_bytes": "kernels bytes", "cycles": "estimated cycles",
    "file_bytes": "file bytes",
}  # fmt: skip


def compare_files(
    first: Annotated[Path, typer.Argument(help="A model, compiled here first, or a compiled file.")],
    second: Annotated[Path, typer.Argument(help="A compiled file: ours, or one from NXP's converter.")],
    target: Annotated[str, typer.Option(help="The chip to compile a model for.")] = "imxrt700",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare a model compiled here with a converted file, or two compiled files: operators, memory, code size.

    Of NXP's files only the container is read.

    Example: openneutron compare model.tflite converted_by_nxp.tflite --target mcxn94x
    """
    import dataclasses
    import json

    from openneutron.cli import console

    with console.progress("comparing"):
        sides = _sides(first, second, target)
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


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value) or "nothing"


def _ratio(ours: object, theirs: object) -> str:
    if isinstance(ours, int) and isinstance(theirs, int) and theirs:
        return f"{ours / theirs:.2f}x"
    return ""


def _sides(first: Path, second: Path, target: str) -> list[Side]:
    """Both columns; a model without NeutronGraphs is compiled and tells how many operators there were."""
    from openneutron.cli.contents import contents_of
    from openneutron.convert import Options, convert
    from openneutron.errors import OptionError
    from openneutron.files import kind_of, read_file

    data = [read_file(path) for path in (first, second)]
    contents = [contents_of(one, str(path)) for one, path in zip(data, (first, second), strict=True)]
    if not contents[1].graphs:
        raise OptionError("it holds no NeutronGraph", where=str(second), hint="name the compiled file second")
    names = [first.name, second.name]
    total = None
    if not contents[0].graphs:
        if kind_of(data[0]) != "tflite":
            raise OptionError(
                "it holds no NeutronGraph", where=str(first), hint="give a LiteRT model or a compiled file"
            )
        total = sum(contents[0].operators.values())
        data[0] = convert(data[0], Options(target=target, source=first.name)).model
        contents[0] = contents_of(data[0], str(first))
        names[0] = f"{first.name}, compiled now"
    return [_side(name, one, file, total) for name, one, file in zip(names, contents, data, strict=True)]


def _side(name: str, found: Contents, data: bytes, total: int | None) -> Side:
    left = {label: count for label, count in found.operators.items() if _GRAPH not in label}
    graphs = found.graphs
    calls = [graph.calls for graph in graphs]
    known = [count for count in calls if count is not None]
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
        cycles=_cycles(data, found),
        file_bytes=found.bytes,
    )


def _cycles(data: bytes, found: Contents) -> int | None:
    """Cycles by our machine model; NXP's microcode cannot be priced."""
    from openneutron import targets
    from openneutron.cli.blocks import blocks_of_file
    from openneutron.compiler.predict import predict

    if any(graph.made_by != "open" for graph in found.graphs):
        return None
    programs = [blocks.program() for blocks in blocks_of_file(data, found.file)]
    return sum(predict(program, targets.load(program.target))[1] for program in programs)
