"""`openneutron evaluate`: the accuracy of a model before and after quantization and compilation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from openneutron.accuracy import Labelled, Score
    from openneutron.program import Program
    from openneutron.sources import Loaded


def evaluate_model(
    model: Annotated[str, typer.Argument(help="What `openneutron compile` takes, or a .pte.")],
    data: Annotated[
        Path | None,
        typer.Option(help="Labelled data: an .npz with x (samples) and y (classes). Zoo models have their own."),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Use the first so many samples; 0 for all.")] = 0,
    target: Annotated[str, typer.Option(help="The chip (`openneutron targets`).")] = "imxrt700",
    per_channel: Annotated[bool, typer.Option("--per-channel", help="Quantize weights per channel.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Measure accuracy on labelled data: float, PT2E and the .pte of a PyTorch model; reference and compiled LiteRT.

    Examples:

    openneutron evaluate cifarnet

    openneutron evaluate package.module:factory --data test.npz --limit 500

    openneutron evaluate model.tflite --data test.npz
    """
    import json

    from openneutron.cli import console

    with console.progress("starting") as stage:
        scores = measure(model, data, limit, target, per_channel, stage)
    if as_json:
        console.put(json.dumps([_plain(one, scores[0]) for one in scores], indent=2))
    else:
        console.stdout().print(_table(scores))


def measure(
    model: str, data: Path | None, limit: int, target: str, per_channel: bool, stage: Callable[[str], None]
) -> list[Score]:
    """The scores of every form the model has, the first being what the others are compared with."""
    from openneutron.files import kind_of, read_file

    if model.endswith(".pte") or (Path(model).is_file() and kind_of(read_file(model)) == "pte"):
        return _of_pte(model, labelled_data(model, data, limit), stage)
    from openneutron.sources import find

    source = find(model)
    labelled = labelled_data(
        model if source.kind != "zoo" else "", data, limit, zoo=model if source.kind == "zoo" else ""
    )
    if source.kind == "tflite":
        return _of_litert(model, labelled, target, stage)
    return _of_torch(model, labelled, target, per_channel, stage)


def labelled_data(model: str, given: Path | None, limit: int, *, zoo: str = "") -> Labelled:
    """The data named by --data, or the test images of a zoo model."""
    from openneutron.accuracy import labelled
    from openneutron.errors import OptionError

    if given is not None:
        return _read(given, limit)
    if not zoo:
        raise OptionError("--data is missing", where=model, hint="give an .npz with x (samples) and y (classes)")
    from openneutron.zoo import load

    images = load(zoo).test_images()
    return labelled(images.inputs.numpy(), images.labels, where=zoo, limit=limit)


def _read(path: Path, limit: int) -> Labelled:
    """The arrays x and y of an .npz file."""
    from openneutron.accuracy import labelled
    from openneutron.cli.arrays import read_arrays
    from openneutron.errors import OptionError

    arrays = read_arrays(path)
    if not isinstance(arrays, dict) or not {"x", "y"} <= set(arrays):
        names = ", ".join(arrays) if isinstance(arrays, dict) else "no names"
        hint = "write it with np.savez(file, x=samples, y=classes)"
        raise OptionError(f"the file has {names or 'nothing'} instead of x and y", where=str(path), hint=hint)
    return labelled(arrays["x"], arrays["y"], where=str(path), limit=limit)


def _of_torch(model: str, data: Labelled, target: str, per_channel: bool, stage: Callable[[str], None]) -> list[Score]:
    from openneutron.cli.sources import compile_source

    program, loaded = compile_source(model, stage, target=target, per_channel=per_channel)
    return torch_scores(program, loaded, data, stage)


def torch_scores(program: Program, loaded: Loaded, data: Labelled, stage: Callable[[str], None]) -> list[Score]:
    """Scores of a PyTorch model in float, of its PT2E form, and of the compiled program."""
    import torch

    from openneutron.accuracy import score
    from openneutron.errors import OptionError

    if loaded.example_inputs is None or program.quantized is None or len(loaded.example_inputs) != 1:
        raise OptionError("only float models with one input can be evaluated", where=loaded.name)
    example = loaded.example_inputs[0]
    if tuple(data.x.shape[1:]) != tuple(example.shape[1:]):
        hint = f"the model takes {list(example.shape[1:])}"
        raise OptionError(f"a sample of x is {list(data.x.shape[1:])}", where=loaded.name, hint=hint)
    forms: dict[str, Any] = {
        "float": loaded.model if isinstance(loaded.model, torch.nn.Module) else loaded.model.module(),
        "PT2E": program.quantized,
        ".pte": program.run,
    }
    scores: list[Score] = []
    for name, form in forms.items():

        def predict(x: Any, form: Any = form) -> Any:
            with torch.no_grad():
                found = form(torch.from_numpy(x.copy()).to(example.dtype))
            return (found[0] if isinstance(found, (tuple, list)) else found).numpy()

        scores.append(score(name, predict, data, batch=int(example.shape[0]), progress=stage))
    return scores


def _of_litert(model: str, data: Labelled, target: str, stage: Callable[[str], None]) -> list[Score]:
    from openneutron.convert import Options, convert
    from openneutron.debug.litert import is_compiled
    from openneutron.files import read_file

    content = read_file(model)
    forms = {"compiled": content}
    if not is_compiled(content, source=model):
        stage("compiling")
        forms = {"reference": content, "compiled": convert(content, Options(target=target, source=model)).model}
    return litert_scores(model, forms, data, stage)


def litert_scores(model: str, forms: dict[str, bytes], data: Labelled, stage: Callable[[str], None]) -> list[Score]:
    """Scores of LiteRT models by name: the original in the reference kernels, compiled ones in the simulator."""
    from openneutron.accuracy import fit_samples, score
    from openneutron.errors import OptionError
    from openneutron.litert_runner import LiteRtRunner

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


def _of_pte(model: str, data: Labelled, stage: Callable[[str], None]) -> list[Score]:
    import torch

    from openneutron.accuracy import fit_samples, score
    from openneutron.errors import OptionError
    from openneutron.executorch.runtime import load_program
    from openneutron.litert.graph import DType, Tensor

    program = load_program(model)
    if len(program.inputs) != 1:
        raise OptionError(f"only programs with one input can be evaluated, this has {len(program.inputs)}", where=model)
    only = program.inputs[0]
    samples = fit_samples(data, Tensor("input_0", only.shape, DType(only.dtype)), where=model)

    def predict(x: Any) -> Any:
        return program.run(torch.from_numpy(x.copy()))[0].numpy()

    return [score(".pte", predict, samples, batch=only.shape[0], progress=stage)]


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
