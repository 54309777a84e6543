"""`openneutron bisect`: which layer's quantization costs accuracy, and what wins it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from openneutron.cli.evaluate import DATA_HELP
from openneutron.cli.inputs.loading import CALIBRATION_HELP, SIZE_HELP, TRUST_HELP
from openneutron.cli.shared.completion import model_names
from openneutron.options import DEFAULT_TARGET
from openneutron.report.accuracy import GOAL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openneutron.analyze.data.source import Data
    from openneutron.executorch.analyze.bisect import Bisection, Fix
    from openneutron.executorch.quality.goals import Measure


_WORTH = 1.0  # decibels that a change to 16 bits must gain to be proposed beside a dearer one
_NEARLY = 3.0  # decibels: half of the noise power


def bisect_model(
    model: Annotated[
        str,
        typer.Argument(
            help="A float model: of the zoo, package.module:factory, a .pt2 or an .onnx.", autocompletion=model_names
        ),
    ],
    data: Annotated[str | None, typer.Option(help=f"{DATA_HELP} Without, the calibration data is used.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Use only this many samples, from the first on.")] = 32,
    mean: Annotated[str, typer.Option(help="Subtracted from images of 0 to 1, per channel: 0.485,0.456,0.406.")] = "",
    std: Annotated[str, typer.Option(help="Images are divided by this after --mean: 0.229,0.224,0.225.")] = "",
    size: Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help=SIZE_HELP)] = None,
    calibration: Annotated[str, typer.Option(help=CALIBRATION_HELP)] = "",
    target: Annotated[
        str,
        typer.Option(
            metavar="CHIP", help="The chip for which 16-bit activations are priced; empty: they are not compiled."
        ),
    ] = DEFAULT_TARGET,
    top: Annotated[int, typer.Option(metavar="N", min=1, help="How many layers to show.")] = 10,
    trust: Annotated[bool, typer.Option("--trust", help=TRUST_HELP)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Leave one layer after another in float and measure what the network gains: the layers that cost most come first.

    Then changes of the quantizer are tried and measured the same way; those to 16-bit activations are compiled, to know
    what they cost in cycles and bytes.

    Examples:

    openneutron bisect cifarnet

    openneutron bisect package.module:factory --data test.npz --limit 200
    """
    import dataclasses
    import json

    from openneutron.analyze.data.source import Data
    from openneutron.terminal import console

    with console.progress("starting") as stage:
        found = _bisect(model, Data(data, limit, mean, std), stage, size or (), calibration, target, trust)
    if as_json:
        console.put(json.dumps({**dataclasses.asdict(found), "proposal": proposal(found)}, indent=2))
        return
    _print(found, top)


def _bisect(
    model: str, data: Data, stage: Callable[[str], None], sizes: Sequence[str] = (), calibration: str = "",
    target: str = "", trust: bool = False,
) -> Bisection:  # fmt: skip
    from openneutron.analyze.data.labelled import check_data
    from openneutron.cli.inputs.loading import found_source
    from openneutron.errors import OptionError

    source = found_source(model, sizes, calibration, trust=trust)
    if source.kind == "tflite":
        raise OptionError("a LiteRT file is quantized already", where=model, hint="give the PyTorch model it came from")
    if data.given is not None:
        check_data(data.given, where=model)
    stage("loading the model")
    loaded = source.load()
    if not loaded.is_module or loaded.example_inputs is None or not loaded.calibration:
        raise OptionError("only float modules with example inputs can be bisected", where=model)
    samples, classes = labelled_samples(model, source.kind == "zoo", data, loaded)
    from openneutron.executorch.analyze.bisect import bisect

    return bisect(
        loaded.model,
        loaded.example_inputs,
        calibration=loaded.calibration,
        samples=samples,
        classes=classes,
        target=target,
        progress=stage,
    )


def labelled_samples(model: str, is_zoo: bool, data: Data, loaded: Any) -> tuple[list[Any], list[int] | None]:
    """Samples of the size of the example inputs, and their classes where they are known."""
    from openneutron.analyze.data.labelled import Wanted
    from openneutron.errors import OptionError
    from openneutron.executorch.run.arrays import tensors_of

    example = loaded.example_inputs[0]
    has_images = False
    if is_zoo:
        from openneutron.zoo import load

        has_images = load(model).test_set is not None
    if data.given is None and not has_images:
        return [tuple(batch) for batch in loaded.calibration[: data.limit]], None
    if len(loaded.example_inputs) != 1 or example.shape[0] != 1:
        raise OptionError("labelled data needs a model with one input and a batch of 1", where=model)
    found = data.read(Wanted(tuple(example.shape[1:])), zoo=model)
    if tuple(found.x.shape[1:]) != tuple(example.shape[1:]):
        hint = f"the model takes {list(example.shape[1:])}"
        raise OptionError(f"a sample of x is {list(found.x.shape[1:])}", where=model, hint=hint)
    samples = [(tensors_of([found.x[at : at + 1]])[0].to(example.dtype),) for at in range(len(found))]
    return samples, [int(one) for one in found.y]


def _text(measure: Measure) -> tuple[str, ...]:
    sqnr = f"{measure.sqnr:.1f} dB"
    return (sqnr,) if measure.accuracy < 0 else (sqnr, f"{measure.accuracy:.1%}")


def _price(fix: Fix, found: Bisection) -> tuple[str, ...]:
    """What a change costs beside the model as it is; nothing where it was not compiled."""
    if found.price is None or fix.price is None:
        return ()
    cycles = fix.price.cycles / found.price.cycles if found.price.cycles else 1.0
    memory, flash = (
        f"{getattr(fix.price, name) - getattr(found.price, name):+,}" for name in ("peak_bytes", "flash_bytes")
    )
    return f"x {cycles:.2f}", memory, flash


def _print(found: Bisection, top: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from openneutron.terminal import console

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
    for heading in ("change", "openneutron compile …"):
        fixes.add_column(heading, overflow="fold")
    for heading in (*figures, *(["cycles", "memory", "flash"] if found.price else [])):
        fixes.add_column(heading, justify="right")
    for fix in found.fixes:
        style = "green" if fix.measure.sqnr > found.quantized.sqnr else "dim"
        fixes.add_row(fix.change, Text(fix.flags), *_text(fix.measure), *_price(fix, found), style=style)
    screen.print(fixes)
    screen.print(proposal(found), markup=False, style="bold")


def proposal(found: Bisection) -> str:
    """The changes to make, in one sentence, the cheapest first: in 8 bits, in 16 bits, one that leaves a layer to the CPU."""
    # A tenth of a decibel is within what another choice of samples would change.
    gains = [(fix, fix.measure.sqnr - found.quantized.sqnr) for fix in found.fixes]
    useful = [(fix, gain) for fix, gain in gains if gain >= 0.1]
    if not useful:
        return "None of these changes helps: look at the calibration data, or train with quantization (docs/qat.md)"
    on_cpu = next((one for one in useful if one[0].how.startswith("exclude")), None)
    wide = [one for one in useful if one[0].how.startswith(("precision", "activations"))]
    in_8 = next((one for one in useful if one is not on_cpu and one not in wide), None)
    chosen = [one for one in (in_8, *_cheapest(wide)) if one is not None]
    said = [_describe_fix(found, *one) for one in chosen]
    if on_cpu is not None and (not said or on_cpu == useful[0]):
        said.append(f"{_describe_fix(found, *on_cpu)}, that layer then {'running' if said else 'runs'} on the CPU")
    return f"Propose: {'; or '.join(said)}"


def _cheapest(wide: list[tuple[Fix, float]]) -> list[tuple[Fix, float]]:
    """Return the cheapest change to 16 bits that is worth it, and the cheapest one that is enough, if that is another."""
    by_price = sorted(
        wide, key=lambda one: (one[0].price.cycles if one[0].price else 0, one[0].how.startswith("activations"))
    )
    most = max((gain for _, gain in wide), default=0.0)
    enough = next((one for one in by_price if one[0].measure.sqnr >= GOAL or one[1] >= most - _NEARLY), None)
    worth = next((one for one in by_price if one[1] >= _WORTH), None)
    return [one for one in dict.fromkeys((worth, enough)) if one is not None]


def _describe_fix(found: Bisection, fix: Fix, gain: float) -> str:
    points = 100 * (fix.measure.accuracy - found.quantized.accuracy)
    accuracy = f", {points:+.1f} points of accuracy" if found.quantized.accuracy >= 0 else ""
    price = _price(fix, found)
    cost = f" for {price[0]} cycles and {price[1]} bytes of memory" if price else ""
    return f"`openneutron compile … {fix.flags}` gains {gain:.1f} dB{accuracy}{cost}"
