"""`openneutron tune`: an accuracy, a perplexity or an SQNR at the fewest cycles, as a quantization file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openneutron.cli.bisect import labelled_samples
from openneutron.cli.evaluate import DATA_HELP
from openneutron.cli.inputs.loading import CALIBRATION_HELP, SIZE_HELP, TRUST_HELP
from openneutron.cli.shared.completion import model_names, target_names
from openneutron.options import DEFAULT_TARGET, SCHEMA

if TYPE_CHECKING:
    from openneutron.analyze.data.source import Data
    from openneutron.executorch.analyze.tune import Goal, Tuned


def tune_model(
    model: Annotated[
        str,
        typer.Argument(
            help="A float model: of the zoo, package.module:factory, a .pt2 or an .onnx.", autocompletion=model_names
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The quantization file to write (.toml).")],
    accuracy: Annotated[float | None, typer.Option(help="The share of right answers to reach, 0 to 1.")] = None,
    drop: Annotated[float | None, typer.Option(help="Or how far below float's it may be: 0.001 is 0.1 point.")] = None,
    sqnr: Annotated[float | None, typer.Option(help="Or the output SQNR against float to reach, in decibels.")] = None,
    perplexity: Annotated[
        float | None,
        typer.Option(
            metavar="TIMES",
            help="Or a language model's perplexity against float's, e.g. 1.05; --data is a file of tokens.",
        ),
    ] = None,
    tokenizer: Annotated[
        str, typer.Option(help="The tokenizer for --data of text: tokenizer.json, .model, or our own.")
    ] = "",
    data: Annotated[str | None, typer.Option(help=f"{DATA_HELP} For --sqnr the calibration data serves too.")] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Use only this many samples (tokens), from the first on.")
    ] = 200,
    mean: Annotated[str, typer.Option(help="Subtracted from images of 0 to 1, per channel: 0.485,0.456,0.406.")] = "",
    std: Annotated[str, typer.Option(help="Images are divided by this after --mean: 0.229,0.224,0.225.")] = "",
    quantization: Annotated[str, typer.Option(help="A quantization file to start from.")] = "",
    per_channel: Annotated[
        bool,
        typer.Option(
            SCHEMA["per_channel"].flags,
            help="Start with a weight scale for each output channel, or one for all of a tensor.",
        ),
    ] = True,
    target: Annotated[
        str,
        typer.Option(
            metavar="CHIP", help="The chip for which cycles count; empty: they do not.", autocompletion=target_names
        ),
    ] = DEFAULT_TARGET,
    cycles: Annotated[
        float, typer.Option(metavar="TIMES", min=1.0, help="At most so many times the cycles of 8 bits everywhere.")
    ] = 1.1,
    trials: Annotated[int, typer.Option(metavar="N", min=1, help="At most so many trials.")] = 40,
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="Processes that try candidates side by side.")] = 1,
    size: Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help=SIZE_HELP)] = None,
    calibration: Annotated[str, typer.Option(help=CALIBRATION_HELP)] = "",
    trust: Annotated[bool, typer.Option("--trust", help=TRUST_HELP)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was tried as JSON.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that is no result of ours; never an input.")
    ] = False,
) -> None:
    """Find the quantization that reaches a goal at the fewest cycles; writes a file for `compile --quantization`.

    First what costs no cycles: corrected biases, rounding, equalisation, observers. Then, for the
    layers whose quantization costs most, observers of their own and 16-bit activations.

    Exit code 0: the goal is reached; 1: it is not, and the file has the best that was found.

    Examples:

    openneutron tune cifarnet --sqnr 30 --limit 8 -o q.toml

    openneutron tune package.module:factory --drop 0.001 --data test.npz -o q.toml

    openneutron tune story_decoder --perplexity 1.05 --limit 60 -o q.toml

    openneutron compile package.module:factory --quantization q.toml
    """
    import json

    from openneutron.analyze.data.source import Data
    from openneutron.cli.main import DIFFERS
    from openneutron.executorch.quantize.choices import to_toml
    from openneutron.files import check_replaceable, check_target, write_file
    from openneutron.machine import targets
    from openneutron.terminal import console

    check_target(output, ".toml", inputs=(model, calibration, data or ""))
    if not force:
        check_replaceable(output)
    target = targets.canonical_name(target) if target else ""
    with console.progress("starting") as stage:
        goal = _goal(sqnr, accuracy, drop, perplexity)
        given: dict[str, Any] = {"quantization": quantization, "per_channel": per_channel}
        source = (model, size or (), calibration, trust)
        limits = target, cycles, trials, workers
        found = _tune(source, Data(data, limit, mean, std), tokenizer, goal, given, limits, stage)
    write_file(output, to_toml(found.choices, found.rows(), head=_describe_result(found, model)))
    if as_json:
        rows = {"reached": found.reached, "cycles": found.cycles, "tried": found.rows(), "layers": list(found.layers)}
        console.put(json.dumps(rows, indent=2))
    else:
        _print(found, model, output)
    if not found.reached:
        raise typer.Exit(DIFFERS)


def _goal(sqnr: float | None, accuracy: float | None, drop: float | None, perplexity: float | None) -> Goal:
    from openneutron.errors import OptionError

    for name, value in (("--accuracy", accuracy), ("--drop", drop)):
        if value is not None and not 0 <= value <= 1:
            raise OptionError(f"{name} is {value:g}", hint="give a share from 0 to 1")
    if sum(one is not None for one in (sqnr, accuracy, drop, perplexity)) != 1:
        raise OptionError("tune needs one goal", hint="give --sqnr, --accuracy, --drop or --perplexity")
    if perplexity is not None and not 1 <= perplexity < float("inf"):
        raise OptionError(f"--perplexity is {perplexity:g}", hint="give times that of float, from 1 on: 1.05")
    from openneutron.executorch.analyze.tune import Goal

    return Goal(sqnr=sqnr, accuracy=accuracy, drop=drop, perplexity=perplexity)


def _tune(
    source: tuple[Any, ...], data: Data, tokenizer: str, goal: Goal, start: dict[str, Any], limits: Any, stage: Any
) -> Tuned:
    from openneutron.analyze.data.labelled import check_data
    from openneutron.cli.inputs.loading import found_source
    from openneutron.cli.shared.text_scores import read_rows
    from openneutron.errors import OptionError
    from openneutron.executorch.analyze.tune import token_samples, tune
    from openneutron.executorch.quantize.choices import Choices

    model, sizes, calibration, trust = source
    chosen = Choices.of(start)
    found = found_source(model, sizes, calibration, trust=trust)
    if found.kind == "tflite":
        raise OptionError("a LiteRT file is quantized already", where=model, hint="give the PyTorch model it came from")
    is_text = goal.perplexity is not None
    rows = read_rows(found, data.given, tokenizer) if is_text else []
    if data.given is not None and not is_text:
        check_data(data.given, where=model)
    stage("loading the model")
    loaded = found.load()
    if not loaded.is_module or loaded.example_inputs is None or not loaded.calibration:
        raise OptionError("only float modules with example inputs can be tuned", where=model)
    classes: list[int] | None
    if is_text:
        samples, classes = token_samples(loaded.model, loaded.example_inputs, rows, data.limit)
    else:
        samples, classes = labelled_samples(model, found.kind == "zoo", data, loaded)
    target, cycles, trials, workers = limits
    return tune(
        loaded.model, loaded.example_inputs, calibration=loaded.calibration, samples=samples, classes=classes, goal=goal,
        start=chosen, target=target, most_cycles=cycles, trials=trials, workers=workers, progress=stage,
    )  # fmt: skip


def _figures(found: Tuned) -> str:
    perplexity = ""
    if math.isfinite(found.floating.loss):
        times = math.exp(min(found.measure.loss - found.floating.loss, 700.0))
        perplexity = f", {times:.3f} × float's perplexity of {math.exp(min(found.floating.loss, 700.0)):.3f}"
    accuracy = f", {found.measure.accuracy:.1%} of answers right (float {found.floating.accuracy:.1%})"
    cycles = f", {found.cycles:.2f} × the cycles of 8 bits everywhere" if found.cycles else ""
    return f"{found.measure.sqnr:.1f} dB{accuracy if found.floating.accuracy >= 0 else ''}{perplexity}{cycles}"


def _describe_result(found: Tuned, model: str) -> str:
    return f"openneutron tune {model}: {'' if found.reached else 'goal not reached; '}{_figures(found)}"


def _print(found: Tuned, model: str, output: Path) -> None:
    from rich.table import Table
    from rich.text import Text

    from openneutron.terminal import console

    screen = console.stdout()
    table = Table(header_style="cyan", box=None)
    known = found.floating.accuracy >= 0
    for heading in ("tried", "output SQNR", *(["accuracy"] if known else []), "cycles", "kept"):
        table.add_column(heading, justify="left" if heading == "tried" else "right", overflow="fold")
    for row in found.rows():
        cells = [f"{row['sqnr']:.1f} dB", *([f"{row['accuracy']:.1%}"] if known else [])]
        cells += [f"× {row['cycles']:.2f}" if "cycles" in row else "", "yes" if row["kept"] else ""]
        table.add_row(Text(row["change"]), *cells, style="green" if row["kept"] else "dim")
    screen.print(table)
    reached = "reached" if found.reached else "not reached"
    screen.print(Text(f"{reached}: {_figures(found)}", style="bold"))
    screen.print(Text(f"openneutron compile {model} --quantization {output}"))
