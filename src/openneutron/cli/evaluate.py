"""`openneutron evaluate`: the accuracy of a model before and after quantization and compilation."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openneutron.cli.shared.completion import model_names, target_names
from openneutron.cli.shared.loading import CALIBRATION_HELP, SIZE_HELP, TRUST_HELP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openneutron.analyze.accuracy import Labelled, Score
    from openneutron.cli.shared.labelled import Wanted
    from openneutron.executorch.capture.sources import Loaded
    from openneutron.program import Program


DATA_HELP = (
    "Labelled data: an .npz with x (samples) and y (classes), a folder with one folder of images or .npy files per class, "
    "or package.module:generator that yields (sample, class)."
)


def evaluate_model(
    model: Annotated[
        str, typer.Argument(help="What `openneutron compile` takes, or a .pte.", autocompletion=model_names)
    ],
    data: Annotated[str | None, typer.Option(help=f"{DATA_HELP} Zoo models may have their own.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Use only this many samples, from the first on; 0 for all.")] = 0,
    mean: Annotated[str, typer.Option(help="Subtracted from images of 0 to 1, per channel: 0.485,0.456,0.406.")] = "",
    std: Annotated[str, typer.Option(help="Images are divided by this after --mean: 0.229,0.224,0.225.")] = "",
    target: Annotated[
        str, typer.Option(help="The chip (`openneutron targets`).", autocompletion=target_names)
    ] = "imxrt700",
    per_channel: Annotated[bool, typer.Option("--per-channel", help="Quantize weights per channel.")] = False,
    size: Annotated[list[str] | None, typer.Option(help=SIZE_HELP)] = None,
    calibration: Annotated[str, typer.Option(help=CALIBRATION_HELP)] = "",
    rounding: Annotated[
        str, typer.Option(help="silicon: also with the board's 16-bit multipliers, assumed where not public.")
    ] = "exact",
    activations: Annotated[
        str, typer.Option(help="int16: compare a version with 16-bit activations too (PyTorch models).")
    ] = "int8",
    trust: Annotated[bool, typer.Option("--trust", help=TRUST_HELP)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Measure accuracy on labelled data: float, PT2E and the .pte of a PyTorch model; reference and compiled LiteRT.

    Examples:

    openneutron evaluate cifarnet

    openneutron evaluate package.module:factory --data test.npz --limit 500

    openneutron evaluate package.module:factory --data package.module:test_samples

    openneutron evaluate model.tflite --data images/ --mean 0.5 --std 0.5
    """
    import json

    from openneutron import console
    from openneutron.board.rounding import LABEL, SILICON, check_rounding

    silicon = check_rounding(rounding) == SILICON
    with console.progress("starting") as stage:
        given: dict[str, Any] = {"sizes": size or (), "calibration": calibration, "trust": trust, "silicon": silicon}
        given["activations"] = activations
        scores = measure(model, Data(data, limit, mean, std), target, per_channel, stage, **given)
    if as_json:
        console.put(json.dumps([_plain(one, scores[0]) for one in scores], indent=2))
    else:
        console.stdout().print(_table(scores))
        if silicon:
            console.stdout().print(f"silicon: {LABEL}", style="dim")


@dataclass(frozen=True)
class Data:
    """What the command line says about the data."""

    given: str | None
    limit: int = 0
    mean: str = ""
    std: str = ""

    def read(self, wanted: Wanted, *, zoo: str = "") -> Labelled:
        """The data for a model that takes `wanted`; a model of the zoo may bring its own."""
        from openneutron.analyze.accuracy import labelled
        from openneutron.cli.shared.labelled import read_data

        if self.given is not None:
            return read_data(self.given, wanted, limit=self.limit, mean=self.mean, std=self.std)
        from openneutron.zoo import load

        images = load(zoo).test_images()
        return labelled(images.inputs.numpy(), images.labels, where=zoo, limit=self.limit)


def measure(
    model: str,
    data: Data,
    target: str,
    per_channel: bool,
    stage: Callable[[str], None],
    *,
    silicon: bool = False,
    sizes: Sequence[str] = (),
    calibration: str = "",
    trust: bool = False,
    activations: str = "int8",
) -> list[Score]:
    """The scores of every form the model has, the first being what the others are compared with.

    With `silicon` there is one more, with the board's multipliers; with `activations` int16 those of such a version.
    """
    from openneutron.cli.shared.labelled import check_data, wanted_by
    from openneutron.cli.shared.loading import compile_loaded, found_source
    from openneutron.files import kind_of, read_file

    is_pte = model.endswith(".pte") or (Path(model).is_file() and kind_of(read_file(model)) == "pte")
    source = None if is_pte else found_source(model, sizes, calibration, trust=trust)
    is_zoo = source is not None and source.kind == "zoo"
    if not is_zoo or data.given is not None:
        check_data(data.given, where=model)
    if source is None:
        return _of_pte(model, data, stage, silicon)
    if source.kind == "tflite":
        return _of_litert(model, data, target, stage, silicon)
    stage("loading the model")
    loaded = source.load()
    samples = data.read(wanted_by(loaded), zoo=model)
    check_shape(samples, loaded)
    program = compile_loaded(loaded, stage, target=target, per_channel=per_channel)
    scores = torch_scores(program, loaded, samples, stage, silicon=silicon)
    if activations != "int8":
        wide = compile_loaded(loaded, stage, target=target, per_channel=per_channel, activations=activations)
        made = torch_scores(wide, loaded, samples, stage)[1:]
        scores += [dataclasses.replace(one, name=f"{one.name} {activations}") for one in made]
    return scores


def check_shape(data: Labelled, loaded: Loaded) -> None:
    """Refuse samples that the model does not take."""
    from openneutron.cli.shared.labelled import wanted_by
    from openneutron.errors import OptionError

    wanted = wanted_by(loaded).shape
    if tuple(data.x.shape[1:]) != wanted:
        hint = f"the model takes {list(wanted)}"
        raise OptionError(f"a sample of x is {list(data.x.shape[1:])}", where=loaded.name, hint=hint)


def torch_scores(
    program: Program, loaded: Loaded, data: Labelled, stage: Callable[[str], None], *, silicon: bool = False
) -> list[Score]:
    """Scores of a PyTorch model in float, of its PT2E form, and of the compiled program."""
    import dataclasses

    from openneutron.analyze.accuracy import score
    from openneutron.board.rounding import SILICON, silicon_file
    from openneutron.errors import OptionError
    from openneutron.executorch.run.arrays import predictor

    if loaded.example_inputs is None or len(loaded.example_inputs) != 1:
        raise OptionError("only float models with one input can be evaluated", where=loaded.name)
    check_shape(data, loaded)
    example = loaded.example_inputs[0]
    forms: dict[str, Any] = {"float": loaded.model, "PT2E": program.quantized, ".pte": program.run}
    if program.quantized is None:  # it came with its own scales
        forms = {"quantized": loaded.model, ".pte": program.run}
    if silicon:
        board = silicon_file(program.data, where=loaded.name)
        forms[SILICON] = dataclasses.replace(program, data=board).run
    return [
        score(name, predictor(form, example), data, batch=int(example.shape[0]), progress=stage)
        for name, form in forms.items()
    ]


def _of_litert(model: str, data: Data, target: str, stage: Callable[[str], None], silicon: bool) -> list[Score]:
    from openneutron.analyze.litert_layers import is_compiled
    from openneutron.board.rounding import SILICON, silicon_file
    from openneutron.cli.shared.labelled import wanted_by_litert
    from openneutron.convert import convert
    from openneutron.files import read_file
    from openneutron.litert.read import read_model
    from openneutron.options import Options

    content = read_file(model)
    samples = data.read(wanted_by_litert(read_model(content, source=model).main, model))
    forms = {"compiled": content}
    if not is_compiled(content, source=model):
        stage("compiling")
        forms = {"reference": content, "compiled": convert(content, Options(target=target, source=model)).model}
    if silicon:
        forms[SILICON] = silicon_file(forms["compiled"], where=model)
    return litert_scores(model, forms, samples, stage)


def litert_scores(model: str, forms: dict[str, bytes], data: Labelled, stage: Callable[[str], None]) -> list[Score]:
    """Scores of LiteRT models by name: the original in the reference kernels, compiled ones in the simulator."""
    from openneutron.analyze.accuracy import fit_samples, score
    from openneutron.errors import OptionError
    from openneutron.run.runner import LiteRtRunner

    scores: list[Score] = []
    for name, form in forms.items():
        runner = LiteRtRunner(form, source=model)
        if len(runner.inputs) != 1:
            raise OptionError(
                f"only models with one input can be evaluated, this has {len(runner.inputs)}", where=model
            )

        def predict(x: Any, runner: LiteRtRunner = runner) -> Any:
            return next(iter(runner.run([x]).outputs.values()))

        samples = fit_samples(data, runner.inputs[0], where=model)
        scores.append(score(name, predict, samples, batch=runner.inputs[0].shape[0], progress=stage))
    return scores


def _of_pte(model: str, data: Data, stage: Callable[[str], None], silicon: bool) -> list[Score]:
    from openneutron.analyze.accuracy import fit_samples, score
    from openneutron.board.rounding import SILICON, silicon_file
    from openneutron.cli.shared.labelled import Wanted
    from openneutron.errors import OptionError
    from openneutron.executorch.run.arrays import run_arrays
    from openneutron.executorch.run.runtime import load_program
    from openneutron.files import read_file
    from openneutron.litert.graph import DType, Tensor

    program = load_program(model)
    if len(program.inputs) != 1:
        raise OptionError(f"only programs with one input can be evaluated, this has {len(program.inputs)}", where=model)
    only = program.inputs[0]
    read = data.read(Wanted(tuple(only.shape[1:])))
    samples = fit_samples(read, Tensor("input_0", only.shape, DType(only.dtype)), where=model)

    forms = {".pte": program}
    if silicon:
        forms[SILICON] = load_program(silicon_file(read_file(model), where=model))
    return [
        score(name, lambda x, one=one: run_arrays(one.run, [x])[0], samples, batch=only.shape[0], progress=stage)  # type: ignore[misc]
        for name, one in forms.items()
    ]


def _plain(one: Score, first: Score) -> dict[str, Any]:
    return {
        "form": one.name,
        "accuracy": one.accuracy,
        "correct": one.correct,
        "total": one.total,
        "agreement": one.agreement(first),
        "seconds": one.seconds,
    }


def _table(scores: list[Score]) -> Any:
    from rich.table import Table

    first = scores[0]
    table = Table(header_style="cyan", box=None)
    table.add_column("form")
    for heading in ("accuracy", "right", f"against {first.name}", f"same answer as {first.name}", "ms per sample"):
        table.add_column(heading, justify="right")
    for one in scores:
        points = 100 * (one.accuracy - first.accuracy)
        against = ("-", "-") if one is first else (f"{points:+.2f} points", f"{one.agreement(first):.2%}")
        milliseconds = f"{1e3 * one.seconds / one.total:.2f}"
        table.add_row(one.name, f"{one.accuracy:.2%}", f"{one.correct:,} of {one.total:,}", *against, milliseconds)
    return table
