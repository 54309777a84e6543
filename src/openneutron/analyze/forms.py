"""Forms of a model that can predict on data: float, quantized in PyTorch, a .pte, LiteRT before and after.

Example:
    >>> forms = litert_forms("model.tflite", {"reference": model, "compiled": compiled})
    >>> score_shards(forms, shards).scores[1].accuracy
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

from openneutron import environment
from openneutron.analyze.accuracy import Form, Labelled, Predictor, fit_samples, in_frames
from openneutron.analyze.data.labelled import Wanted, wanted_by, wanted_by_litert
from openneutron.board.rounding import SILICON, silicon_file
from openneutron.errors import OptionError
from openneutron.files import kind_of
from openneutron.litert.graph import DType, Tensor
from openneutron.litert.read import read_model
from openneutron.program import Program
from openneutron.run.runner import LiteRtRunner
from openneutron.run.samples import Runner, run_samples

if TYPE_CHECKING:
    from openneutron.executorch.capture.sources import Loaded


def torch_forms(program: Program, loaded: Loaded, *, silicon: bool = False) -> list[Form]:
    """Return a PyTorch model in float, its PT2E form, and the compiled program; with `silicon` also with the board's
    multipliers.
    """
    forms: dict[str, Any] = {"float": loaded.model, "PT2E": program.quantized, ".pte": program}
    if program.quantized is None:  # the model has scales of its own
        forms = {"quantized": loaded.model, ".pte": program}
    if silicon:
        board = silicon_file(program.data, where=loaded.name)
        forms[SILICON] = dataclasses.replace(program, data=board)
    return [torch_form(name, form, loaded) for name, form in forms.items()]


def torch_form(name: str, form: Any, loaded: Loaded) -> Form:
    """Return the form of a module, an exported program or a `Program` with the loaded model's input."""
    from openneutron.executorch.run.arrays import exported_module, forgetter, many_predictor, predictor

    if loaded.example_inputs is None or len(loaded.example_inputs) != 1:
        raise OptionError("only float models with one input can be evaluated", where=loaded.name)
    example = loaded.example_inputs[0]

    def make() -> Predictor:
        if isinstance(form, Program):
            return Predictor(predictor(form.run, example), form.reset, many_predictor(form.run_many, example))
        module = exported_module(form)
        return Predictor(predictor(module, example), forgetter(module))

    def fit(data: Labelled) -> Labelled:
        return in_frames(data, wanted_by(loaded).shape, where=loaded.name)

    return Form(name, make, int(example.shape[0]), fit)


def litert_forms(model: str, forms: dict[str, bytes]) -> list[Form]:
    """Return forms of LiteRT models by name: the original in the reference kernels, compiled ones in the simulator."""
    found = []
    for name, form in forms.items():
        graph = read_model(form, source=model).main
        wanted_by_litert(graph, model)  # refuses several inputs
        only = graph.tensors[graph.inputs[0]]

        def make(form: bytes = form) -> Predictor:
            runner = LiteRtRunner(form, source=model)
            return Predictor(
                lambda x: runner(x)[0], runner.reset, lambda xs: _first_outputs(runner, [(x,) for x in xs])
            )

        found.append(Form(name, make, int(only.shape[0]), partial(fit_samples, tensor=only, where=model)))
    return found


def pte_form(name: str, data: bytes, *, where: str) -> tuple[Form, Wanted]:
    """Return the form of a program file and its input; the program is loaded in the process that uses it."""
    from openneutron.executorch.run.arrays import run_arrays, tensors_of
    from openneutron.executorch.run.runtime import load_program

    program = load_program(data, where=where)
    if len(program.inputs) != 1:
        raise OptionError(f"only programs with one input can be evaluated, this has {len(program.inputs)}", where=where)
    only = program.inputs[0]
    tensor = Tensor("input_0", only.shape, DType(only.dtype))

    def make() -> Predictor:
        loaded = load_program(data, where=where)
        return Predictor(
            lambda x: run_arrays(loaded.run, [x])[0],
            loaded.reset,
            lambda xs: [value.numpy() for value in _first_outputs(loaded, [tensors_of([x]) for x in xs])],
        )

    fit = partial(fit_samples, tensor=tensor, where=where)
    return Form(name, make, int(only.shape[0]), fit), Wanted(tuple(only.shape[1:]))


def _first_outputs(runner: Runner, samples: list[Any]) -> list[Any]:
    """Return the first output of each sample."""
    return [outputs[0] for outputs in run_samples(runner, samples, threads=environment.threads())]


def compiled_form(data: bytes, *, where: str) -> tuple[Form, Wanted]:
    """Return the form of a compiled file of either kind, and its input."""
    if kind_of(data) == "pte":
        return pte_form(".pte", data, where=where)
    wanted = wanted_by_litert(read_model(data, source=where).main, where)
    return litert_forms(where, {"compiled": data})[0], wanted
