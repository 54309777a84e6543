"""`openneutron bisect`: which layer's quantization costs accuracy, and what wins it back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from openneutron.executorch.bisect import Bisection, Measure


def bisect_model(
    model: Annotated[
        str, typer.Argument(help="A PyTorch model: of the zoo, package.module:factory, or a .pt2 in float.")
    ],
    data: Annotated[
        Path | None, typer.Option(help="Labelled data: an .npz with x and y. Without, the calibration data is used.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Use the first so many samples.")] = 32,
    top: Annotated[int, typer.Option(min=1, help="How many layers to show.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Leave one layer after another in float and measure what the network gains: the layers that cost most come first.

    Then changes of the quantizer are tried and measured the same way.

    Examples:

    openneutron bisect cifarnet

    openneutron bisect package.module:factory --data test.npz --limit 200
    """
    import dataclasses
    import json

    from openneutron.cli import console

    with console.progress("starting") as stage:
        found = _bisect(model, data, limit, stage)
    if as_json:
        console.put(json.dumps(dataclasses.asdict(found), indent=2))
        return
    _print(found, top)


def _bisect(model: str, data: Path | None, limit: int, stage: Callable[[str], None]) -> Bisection:
    from openneutron.errors import OptionError
    from openneutron.sources import find

    source = find(model)
    if source.kind == "tflite":
        raise OptionError("a LiteRT file is quantized already", where=model, hint="give the PyTorch model it came from")
    stage("loading the model")
    loaded = source.load()
    import torch

    if not isinstance(loaded.model, torch.nn.Module) or loaded.example_inputs is None or not loaded.calibration:
        raise OptionError("only PyTorch modules with example inputs can be bisected", where=model)
    samples, classes = _samples(model, source.kind == "zoo", data, limit, loaded)
    from openneutron.executorch.bisect import bisect

    return bisect(
        loaded.model,
        loaded.example_inputs,
        calibration=loaded.calibration,
        samples=samples,
        classes=classes,
        progress=stage,
    )


def _samples(
    model: str, is_zoo: bool, data: Path | None, limit: int, loaded: Any
) -> tuple[list[Any], list[int] | None]:
    """Samples of the size of the example inputs, and their classes where they are known."""
    import torch

    from openneutron.cli.evaluate import labelled_data
    from openneutron.errors import OptionError

    example = loaded.example_inputs[0]
    has_images = False
    if is_zoo:
        from openneutron.zoo import load

        has_images = load(model).test_set is not None
    if data is None and not has_images:
        return [tuple(batch) for batch in loaded.calibration[:limit]], None
    found = labelled_data(model, data, limit, zoo=model if has_images else "")
    if len(loaded.example_inputs) != 1 or example.shape[0] != 1:
        raise OptionError("labelled data needs a model with one input and a batch of 1", where=model)
    if tuple(found.x.shape[1:]) != tuple(example.shape[1:]):
        hint = f"the model takes {list(example.shape[1:])}"
        raise OptionError(f"a sample of x is {list(found.x.shape[1:])}", where=model, hint=hint)
    samples = [(torch.from_numpy(found.x[at : at + 1].copy()).to(example.dtype),) for at in range(len(found))]
    return samples, [int(one) for one in found.y]


def _text(measure: Measure) -> tuple[str, ...]:
    sqnr = f"{measure.sqnr:.1f} dB"
    return (sqnr,) if measure.accuracy < 0 else (sqnr, f"{measure.accuracy:.1%}")


def _print(found: Bisection, top: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from openneutron.cli import console

    screen = console.stdout()
    known = found.quantized.accuracy >= 0
    figures = ("output SQNR", *(["accuracy"] if known else []))
    line = f"quantized: {', '.join(_text(found.quantized))}"
    screen.print(f"{line}; float: {found.floating.accuracy:.1%}" if known else line, markup=False)
    layers = Table(title="Layers by what their quantization costs", title_justify="left", header_style="cyan", box=None)
    for heading in ("layer", "operator", "source"):
        layers.add_column(heading, overflow="fold")
    for heading in ("costs", *(f"{one} in float" for one in figures)):
        layers.add_column(heading, justify="right")
    for layer in found.layers[:top]:
        layers.add_row(
            Text(layer.name), layer.operator, Text(layer.source), f"{layer.gain:.2f} dB", *_text(layer.measure)
        )
    screen.print(layers)
    fixes = Table(title="Changes, measured", title_justify="left", header_style="cyan", box=None)
    for heading in ("change", "NeutronQuantizer(…)"):
        fixes.add_column(heading, overflow="fold")
    for heading in figures:
        fixes.add_column(heading, justify="right")
    for fix in found.fixes:
        style = "green" if fix.measure.sqnr > found.quantized.sqnr else "dim"
        fixes.add_row(fix.change, Text(fix.how), *_text(fix.measure), style=style)
    screen.print(fixes)
