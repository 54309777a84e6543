"""`openneutron inspect`: what is inside a `.pte`, a LiteRT file, a payload or microcode."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from openneutron.cli.inputs.contents import Contents, GraphInfo
    from openneutron.cli.inputs.tensor_info import TensorInfo


def inspect_file(
    file: Annotated[Path, typer.Argument(help="A .pte, .tflite, payload or microcode file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a file holds: inputs, outputs, operators, and each NeutronGraph with who made it.

    Example: openneutron inspect cifarnet.pte
    """
    import dataclasses
    import json

    from openneutron.cli.inputs.contents import contents_of
    from openneutron.files import read_file
    from openneutron.terminal import console
    from openneutron.unsupported_files import refuse_unsupported_file

    refuse_unsupported_file(file)
    data = read_file(file)
    with console.progress("reading"):
        found = contents_of(data, str(file))
    if as_json:
        console.put(json.dumps(dataclasses.asdict(found), indent=2))
        return
    _print(found, console.stdout())


def _print(found: Contents, screen: Console) -> None:
    screen.print(f"{found.file}: {found.kind}, {found.bytes:,} bytes", markup=False)
    _tensors("inputs", found.inputs, screen)
    _tensors("outputs", found.outputs, screen)
    for heading, counts in (("operators", found.operators), ("delegates", found.delegates)):
        if counts:
            text = ", ".join(f"{name} x{count}" if count > 1 else name for name, count in counts.items())
            screen.print(f"{heading}: {text}", markup=False)
    for name, values in found.constants.items():
        screen.print(f"{name}: {', '.join(f'{one:.9g}' for one in values)}", markup=False)
    for graph in found.graphs:
        _graph(graph, screen)
    for note in found.notes:
        screen.print(note, markup=False, style="yellow")


def _tensors(heading: str, tensors: Sequence[TensorInfo], screen: Console) -> None:
    if tensors:
        screen.print(f"{heading}:")
    for tensor in tensors:
        notes = ", ".join(filter(None, (tensor.quantization, tensor.order)))
        shape = "x".join(map(str, tensor.shape)) or "scalar"
        screen.print(f"  {tensor.name}: {tensor.dtype} {shape}{f' ({notes})' if notes else ''}", markup=False)


def _graph(graph: GraphInfo, screen: Console) -> None:
    maker = (
        f"OpenNeutron {graph.converter_version}"
        if graph.made_by == "open"
        else f"NXP, version {graph.converter_version}"
    )
    target = f" for {graph.target}" if graph.target else ""
    rows = [f"{graph.where}: NeutronGraph by {maker}{target}{', profiling' if graph.profiling else ''}"]
    rows.append(
        f"  microcode {graph.microcode_bytes:,}, weights {graph.weights_bytes:,}, kernels {graph.kernels_bytes:,}, "
        f"scratch {graph.scratch_bytes:,}, prefetch {graph.prefetch_bytes:,} bytes"
    )
    calls = "" if graph.calls is None else f", {graph.calls:,} kernel calls"
    rows.append(f"  inputs {graph.inputs}, outputs {graph.outputs}{calls}")
    if graph.kernels:
        rows.append("  kernels: " + ", ".join(f"{name} x{count}" for name, count in graph.kernels.items()))
    if graph.attributes:
        rows.append("  attributes: " + ", ".join(f"{name} {value}" for name, value in graph.attributes.items()))
    for row in rows:
        screen.print(row, markup=False)
