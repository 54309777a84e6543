"""The part of a recipe that quantizes: quantizers, and the passes that run before and between their steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import torch
from executorch.export import QuantizationRecipe
from torch.fx import GraphModule
from torchao.quantization.pt2e.quantizer import Quantizer

from openneutron.errors import OptionError
from openneutron.executorch.capture.export import one_thread
from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.check.rewrites import MOST_SAMPLES, RewriteCheck
from openneutron.executorch.quantize.improve.equalize import equalize
from openneutron.executorch.quantize.improve.equalize_weights import equalize_weights
from openneutron.executorch.quantize.passes.fold_batch_norm import fold_batch_norm
from openneutron.executorch.quantize.pt2e import remove_guards
from openneutron.executorch.quantize.train.training import TrainFunction, run_training
from openneutron.executorch.recipes.recipe_options import Batches, CalibrationOptions, QuantizationOptions

Step = Callable[[GraphModule], GraphModule]
_NORM = "aten.batch_norm.default"


def quantization_recipe(
    quantizers: list[Quantizer], options: CalibrationOptions, *, is_qat: bool, before: Sequence[Step] = ()
) -> QuantizationRecipe:
    """Quantizers as ExecuTorch's QUANTIZE stage takes them; `before` are steps on the module with its norms folded.

    Example:
        >>> recipe = quantization_recipe([NeutronQuantizer()], NeutronRecipeOptions(calibration=batches), is_qat=False)
    """
    if is_qat:
        assert isinstance(options, QuantizationOptions) and options.train is not None
        return QuantizationRecipe(
            quantizers=quantizers,
            is_qat=True,
            train_fn=partial(_train, options.train, options),
            pre_prepare_passes=[remove_guards],
        )
    calibration, inputs = options.calibration, InputNotes()
    return QuantizationRecipe(
        quantizers=quantizers,
        calibration_inputs_fn=None if calibration is None else partial(_calibration, calibration, inputs),
        pre_prepare_passes=[
            inputs,
            remove_guards,
            check_evaluation,
            fold_norms,
            *before,
            partial(_check_rewrites, quantizers, calibration),
        ],
    )


class InputNotes:
    """Records the inputs of a model before it is prepared, to check calibration data against them."""

    def __init__(self) -> None:
        self._wanted: list[Any] = []

    def __call__(self, model: GraphModule) -> GraphModule:
        """Record the inputs of the model that is quantized next."""
        self._wanted = [value_of(node) for node in model.graph.nodes if node.op == "placeholder"]
        return model

    def check(self, number: int, sample: Any) -> tuple[Any, ...]:
        """Return the sample as a tuple; raise an `OptionError` if it differs from the model's inputs."""
        given = tuple(sample) if isinstance(sample, (tuple, list)) else (sample,)
        if [_describe(value) for value in given] != [_describe(value) for value in self._wanted]:
            raise OptionError(
                f"calibration sample {number} is {', '.join(map(_describe, given)) or 'empty'}", where="quantize",
                hint=f"the model takes {', '.join(map(_describe, self._wanted))}",
            )  # fmt: skip
        return given


def _describe(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return f"a {type(value).__name__}"
    return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"


def check_evaluation(model: GraphModule) -> GraphModule:
    """Refuse a model that was exported while training: its batch norms would follow the calibration data."""
    for node in model.graph.nodes:
        if operator_name(node) == _NORM and arguments(node).get("training"):
            raise OptionError(
                f"{node.name} is in training mode", where="quantize", hint="call model.eval() before exporting"
            )
    return model


def fold_norms(model: GraphModule) -> GraphModule:
    """Fold batch norms ourselves: torchao also folds into convolutions that something else reads."""
    fold_batch_norm(model)
    return model


def equalize_model(
    calibration: Batches | Callable[[], Batches] | None, per_channel: bool, model: GraphModule
) -> GraphModule:
    """Equalize the channels between layers, once batch norms are folded."""
    if not per_channel:
        equalize_weights(model)
        return model
    batches = calibration() if callable(calibration) else calibration
    equalize(model, [tuple(one) if isinstance(one, (tuple, list)) else (one,) for one in batches or ()])
    return model


def _check_rewrites(
    quantizers: Sequence[Any], calibration: Batches | Callable[[], Batches] | None, model: GraphModule
) -> GraphModule:
    """Let our quantizer hold its rewrites against the module on the first calibration samples."""
    batches = calibration() if callable(calibration) else calibration
    first = [tuple(one) if isinstance(one, (tuple, list)) else (one,) for one in islice(batches or (), MOST_SAMPLES)]
    for quantizer in quantizers:
        if first and hasattr(quantizer, "check"):
            quantizer.check = RewriteCheck(model, first)
    return model


def _calibration(calibration: Batches | Callable[[], Batches], inputs: InputNotes) -> Iterator[tuple[Any, ...]]:
    """The batches one by one, on one thread: the histogram observer's scales depend on the number of threads."""
    batches = calibration() if callable(calibration) else calibration
    count = 0
    with one_thread():
        for batch in batches:
            count += 1
            yield inputs.check(count - 1, batch)
    if not count:
        raise OptionError("calibration is empty", where="quantize", hint="give inputs that look like real ones")


def _train(train: TrainFunction, options: QuantizationOptions, model: GraphModule) -> None:
    run_training(model, train, options.schedule, options.progress)
