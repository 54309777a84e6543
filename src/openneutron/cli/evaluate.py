"""`openneutron evaluate`: the accuracy of a model before and after quantization and compilation."""

from __future__ import annotations

import dataclasses
import inspect
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openneutron.cli.compile import FLAGGED, given_options, parameter
from openneutron.cli.inputs.loading import CALIBRATION_HELP, SIZE_HELP, TRUST_HELP
from openneutron.cli.shared.completion import model_names, target_names
from openneutron.options import DEFAULT_TARGET, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from openneutron.analyze.accuracy import Form, Labelled, Score
    from openneutron.analyze.data.source import Data
    from openneutron.analyze.sharded import Evaluation, Shard
    from openneutron.executorch.capture.sources import Loaded, Source
    from openneutron.program import Program


# What decides how a PyTorch model is quantized, beside what this command names itself.
_NAMES = (
    "observer", "exclude", "precision", "quantization", "equalize", "smooth", "correct_bias", "adaround", "fit_ranges",
)  # fmt: skip
_QUANTIZING = tuple(one for one in FLAGGED if one.name in _NAMES)

DATA_HELP = (
    "Labelled data: an .npz with x (samples) and y (classes), a folder with one folder of images or .npy files per class, "
    "WebDataset .tar files (data-{000..099}.tar), or package.module:generator that yields (sample, class)."
)


def evaluate_model(
    model: Annotated[
        str, typer.Argument(help="What `openneutron compile` takes, or a .pte.", autocompletion=model_names)
    ],
    data: Annotated[str | None, typer.Option(help=f"{DATA_HELP} Zoo models may have their own.")] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="Use only this many samples, from the first on; 0 for all.")
    ] = 0,
    mean: Annotated[str, typer.Option(help="Subtracted from images of 0 to 1, per channel: 0.485,0.456,0.406.")] = "",
    std: Annotated[str, typer.Option(help="Images are divided by this after --mean: 0.229,0.224,0.225.")] = "",
    target: Annotated[
        str, typer.Option(metavar="CHIP", help="The chip (`openneutron targets`).", autocompletion=target_names)
    ] = DEFAULT_TARGET,
    per_channel: Annotated[bool, typer.Option(SCHEMA["per_channel"].flags, help=SCHEMA["per_channel"].help)] = True,
    size: Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help=SIZE_HELP)] = None,
    calibration: Annotated[str, typer.Option(help=CALIBRATION_HELP)] = "",
    rounding: Annotated[
        str, typer.Option(help="silicon: also with the board's 16-bit multipliers, assumed where not public.")
    ] = "exact",
    activations: Annotated[
        str, typer.Option(help="int16: compare a version with 16-bit activations too (PyTorch models).")
    ] = "int8",
    trust: Annotated[bool, typer.Option("--trust", help=TRUST_HELP)] = False,
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="Processes that share the data.")] = 1,
    scheduler: Annotated[str, typer.Option(help="A Dask scheduler, e.g. tcp://host:8786, instead of processes.")] = "",
    shard_size: Annotated[
        int, typer.Option(metavar="N", min=1, help="Samples that are read and scored at a time.")
    ] = 256,
    decide: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS", min=0, help="Stop once it is sure whether each form is this many points below the first."
        ),
    ] = None,
    perplexity: Annotated[
        bool,
        typer.Option("--perplexity", help="A language model: --data is a file of tokens, or text with --tokenizer."),
    ] = False,
    tokenizer: Annotated[str, typer.Option(help="The tokenizer for text: tokenizer.json, .model, or our own.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
    **quantizing: Any,
) -> None:
    """Measure accuracy on labelled data: float, PT2E and the .pte of a PyTorch model; reference and compiled LiteRT.

    Examples:

    openneutron evaluate cifarnet

    openneutron evaluate package.module:factory --data test.npz --limit 500

    openneutron evaluate package.module:factory --data package.module:test_samples

    openneutron evaluate model.tflite --data images/ --mean 0.5 --std 0.5

    openneutron evaluate story_decoder --perplexity --limit 1

    openneutron evaluate package.module:factory --data "val-{000..049}.tar" --workers 2 --decide 1
    """
    import json

    from openneutron.analyze.data.source import Data
    from openneutron.analyze.sharded import score_shards
    from openneutron.board.rounding import LABEL, SILICON, check_rounding
    from openneutron.cli.inputs.loading import found_source
    from openneutron.cli.main import DIFFERS
    from openneutron.cli.shared.text_scores import evaluate_text, plain_text_score, text_table
    from openneutron.terminal import console

    silicon = check_rounding(rounding) == SILICON
    if perplexity:
        options = given_options(_QUANTIZING, quantizing) | {"target": target, "per_channel": per_channel}
        options |= {"activations": activations}
        source = found_source(model, size or (), calibration, trust=trust)
        with console.progress("starting") as stage:
            scores = evaluate_text(source, data, tokenizer, limit, stage, **options)
        if as_json:
            console.put(json.dumps([plain_text_score(one, scores[0]) for one in scores], indent=2))
        else:
            console.stdout().print(text_table(scores))
        return
    with console.progress("starting") as stage:
        given: dict[str, Any] = {"sizes": size or (), "calibration": calibration, "trust": trust, "silicon": silicon}
        given |= {"activations": activations, "quantizing": given_options(_QUANTIZING, quantizing)}
        given |= {"target": target, "per_channel": per_channel}
        what = (model, Data(data, limit, mean, std, shard_size))
        limits: dict[str, Any] = {"limit": limit, "decide": None if decide is None else decide / 100, "progress": stage}
        if scheduler:
            found = _on_cluster(scheduler, what, given, limits)
        else:
            found = score_shards(*build_forms(*what, stage=stage, **given), workers=workers, **limits)
    if as_json:
        console.put(json.dumps([_plain(one, found) for one in found.scores], indent=2))
    else:
        console.stdout().print(_table(found))
        if found.stopped:
            console.stdout().print(f"decided after {found.scores[0].total:,} samples", style="dim")
        if silicon:
            console.stdout().print(f"silicon: {LABEL}", style="dim")
    for failure in found.failures:
        console.error(f"left out: {failure}")
    if found.failures:
        raise typer.Exit(DIFFERS)


def _on_cluster(address: str, what: tuple[str, Data], given: dict[str, Any], limits: dict[str, Any]) -> Evaluation:
    """The same on a Dask cluster, whose workers compile the model and read the data themselves."""
    from openneutron.analyze.sharded import collect
    from openneutron.errors import OptionError
    from openneutron.sweeps.cluster import cluster
    from openneutron.sweeps.evaluating import parts_on

    with cluster(address, 0) as client:  # before the compile: it may not be there
        forms, shards = build_forms(*what, stage=limits["progress"], **given)
        known = list(shards)
        if known and known[0].content is not None:
            raise OptionError(
                "a generator gives its samples here, not to workers of a cluster", where=str(what[1].given),
                hint="give files or folders that the workers can read, or leave --scheduler out",
            )  # fmt: skip
        names = [form.name for form in forms]
        return collect(names, parts_on(client, partial(build_forms_quietly, *what, **given), len(known)), **limits)


def build_forms_quietly(model: str, data: Data, **given: Any) -> tuple[list[Form], Iterable[Shard]]:
    """`build_forms` for a worker, which shows no progress."""
    return build_forms(model, data, stage=lambda text: None, **given)


def _with_quantizing(function: Callable[..., None]) -> None:
    """Let typer see the quantizer's options in place of `**quantizing`."""
    shown = inspect.signature(function, eval_str=True)
    fixed = [one for one in shown.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    vars(function)["__signature__"] = shown.replace(parameters=[*fixed, *map(parameter, _QUANTIZING)])


_with_quantizing(evaluate_model)


def build_forms(
    model: str,
    data: Data,
    *,
    stage: Callable[[str], None],
    target: str = DEFAULT_TARGET,
    per_channel: bool = True,
    silicon: bool = False,
    sizes: Sequence[str] = (),
    calibration: str = "",
    trust: bool = False,
    activations: str = "int8",
    quantizing: Mapping[str, Any] | None = None,
) -> tuple[list[Form], Iterable[Shard]]:
    """Every form the model has, the first being what the others are compared with, and the data to ask them about.

    With `silicon` there is one more, with the board's multipliers; with `activations` int16 those of such a version.
    `quantizing` are options of a compile.
    """
    from openneutron.analyze.data.labelled import check_data, wanted_by
    from openneutron.analyze.forms import torch_forms
    from openneutron.cli.inputs.loading import compile_loaded, found_source
    from openneutron.files import kind_of, read_file

    is_pte = model.endswith(".pte") or (Path(model).is_file() and kind_of(read_file(model)) == "pte")
    source = None if is_pte else found_source(model, sizes, calibration, trust=trust)
    is_zoo = source is not None and source.kind == "zoo"
    if not is_zoo or data.given is not None:
        check_data(data.given, where=model)
    if source is None:
        return _of_pte(model, data, silicon)
    if source.kind == "tflite":
        return _of_litert(source, data, target, stage, silicon)
    stage("loading the model")
    loaded = source.load()
    shards = data.shards(wanted_by(loaded), zoo=model)
    options = {"target": target, "per_channel": per_channel, **(quantizing or {})}
    forms = torch_forms(compile_loaded(loaded, stage, **options), loaded, silicon=silicon)
    if activations != "int8":
        wide = compile_loaded(loaded, stage, **options, activations=activations)
        made = torch_forms(wide, loaded)[1:]
        forms += [dataclasses.replace(one, name=f"{one.name} {activations}") for one in made]
    return forms, shards


def torch_scores(program: Program, loaded: Loaded, data: Labelled, stage: Callable[[str], None]) -> list[Score]:
    """Scores of a PyTorch model in float, of its PT2E form, and of the compiled program."""
    from openneutron.analyze.forms import torch_forms

    return _scores(torch_forms(program, loaded), data, stage)


def litert_scores(model: str, forms: dict[str, bytes], data: Labelled, stage: Callable[[str], None]) -> list[Score]:
    """Scores of LiteRT models by name: the original in the reference kernels, compiled ones in the simulator."""
    from openneutron.analyze.forms import litert_forms

    return _scores(litert_forms(model, forms), data, stage)


def _scores(forms: list[Form], data: Labelled, stage: Callable[[str], None]) -> list[Score]:
    from openneutron.analyze.accuracy import score

    return [score(one.name, one.make(), one.fit(data), batch=one.batch, progress=stage) for one in forms]


def _of_litert(
    source: Source, data: Data, target: str, stage: Callable[[str], None], silicon: bool
) -> tuple[list[Form], Iterable[Shard]]:
    from openneutron.analyze.data.labelled import wanted_by_litert
    from openneutron.analyze.forms import litert_forms
    from openneutron.analyze.litert_layers import is_compiled
    from openneutron.board.rounding import SILICON, silicon_file
    from openneutron.convert import convert
    from openneutron.files import read_file
    from openneutron.litert.read import read_model
    from openneutron.options import Options

    model = source.text
    content = read_file(model)
    shards = data.shards(wanted_by_litert(read_model(content, source=model).main, model))
    forms = {"compiled": content}
    if not is_compiled(content, source=model):
        made = source.litert_model().model
        stage("compiling")
        forms = {"reference": made, "compiled": convert(made, Options(target=target, source=model)).model}
        if source.calibration:
            forms = {"float": content, **forms}
    if silicon:
        forms[SILICON] = silicon_file(forms["compiled"], where=model)
    return litert_forms(model, forms), shards


def _of_pte(model: str, data: Data, silicon: bool) -> tuple[list[Form], Iterable[Shard]]:
    from openneutron.analyze.forms import pte_form
    from openneutron.board.rounding import SILICON, silicon_file
    from openneutron.files import read_file

    content = read_file(model)
    form, wanted = pte_form(".pte", content, where=model)
    forms = [form]
    if silicon:
        forms.append(pte_form(SILICON, silicon_file(content, where=model), where=model)[0])
    return forms, data.shards(wanted)


def _plain(one: Score, found: Evaluation) -> dict[str, Any]:
    first = found.scores[0]
    difference, low, high = one.difference(first, found.labels)
    return {
        "form": one.name,
        "accuracy": one.accuracy,
        "interval": one.interval(),
        "correct": one.correct,
        "total": one.total,
        "difference": difference,
        "difference_interval": (low, high),
        "agreement": one.agreement(first),
        "seconds": one.seconds,
        "stopped": found.stopped,
    }


def _table(found: Evaluation) -> Any:
    from rich.table import Table

    first = found.scores[0]
    table = Table(header_style="cyan", box=None)
    table.add_column("form")
    headings = ("accuracy", "95 %", "right", f"against {first.name}", "95 %", "same answer", "ms per sample")
    for heading in headings:
        table.add_column(heading, justify="right")
    for one in found.scores:
        low, high = one.interval()
        points, least, most = (100 * value for value in one.difference(first, found.labels))
        against = [f"{points:+.2f} points", f"{least:+.2f} … {most:+.2f}", f"{one.agreement(first):.2%}"]
        table.add_row(
            one.name, f"{one.accuracy:.2%}", f"{100 * low:.1f} … {100 * high:.1f}",
            f"{one.correct:,} of {one.total:,}", *(["-"] * 3 if one is first else against),
            f"{1e3 * one.seconds / one.total:.2f}",
        )  # fmt: skip
    return table
