"""The QAT stage: prepare → the user's train function → convert, in place of ExecuTorch's QUANTIZE stage.

Unlike that one it captures the model with a batch of two, so that example inputs of one image do not fix the batch size,
leaves the caller's model as it was, checks losses, and freezes statistics by a schedule. It knows no backend.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from executorch.export import StageType
from executorch.export.stages import PipelineArtifact, Stage
from torch.fx import GraphModule
from torchao.quantization.pt2e import (
    allow_exported_model_train_eval,
    move_exported_model_to_eval,
    move_exported_model_to_train,
)
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e
from torchao.quantization.pt2e.quantizer import ComposableQuantizer, Quantizer

from openneutron.errors import OpenNeutronError, OptionError
from openneutron.executorch.recipes.quantization import remove_guards
from openneutron.executorch.recipes.training import STAGE, Schedule, TrainFunction, run_training

Inputs = tuple[Any, ...]
GraphPass = Callable[[GraphModule], GraphModule]


@dataclass(frozen=True)
class Passes:
    """Graph passes around preparing and converting, by the names of ExecuTorch's `QuantizationRecipe`."""

    pre_prepare: Sequence[GraphPass] = ()
    post_prepare: Sequence[GraphPass] = ()
    pre_convert: Sequence[GraphPass] = ()
    post_convert: Sequence[GraphPass] = ()


class QatStage(Stage):
    """A drop-in for the QUANTIZE stage that trains.

    Example:
        >>> stage = QatStage([NeutronQuantizer(is_qat=True)], train, schedule=Schedule(freeze_norms=0.5))
        >>> session.register_stage(StageType.QUANTIZE, stage)
    """

    def __init__(
        self,
        quantizers: Sequence[Quantizer],
        train: TrainFunction,
        *,
        schedule: Schedule | None = None,
        progress: Callable[[str], None] | None = None,
        passes: Passes | None = None,
    ) -> None:
        super().__init__()
        if not quantizers:
            raise OptionError("there is no quantizer", where=STAGE, hint="give at least one")
        self._quantizer = quantizers[0] if len(quantizers) == 1 else ComposableQuantizer(list(quantizers))
        self._train = train
        self._schedule = schedule or Schedule()
        self._progress = progress
        self._passes = passes or Passes()

    @property
    def stage_type(self) -> Any:
        """It takes the place of QUANTIZE, which the stages behind it expect."""
        return StageType.QUANTIZE

    @property
    def valid_predecessor_stages(self) -> list[Any]:
        """As QUANTIZE."""
        return [StageType.SOURCE_TRANSFORM]

    @property
    def can_start_pipeline(self) -> bool:
        """As QUANTIZE."""
        return True

    def run(self, artifact: PipelineArtifact) -> None:
        """Train every method's model; a failure leaves no artifact."""
        inputs = artifact.get_context("example_inputs")
        quantized = {}
        for method, model in artifact.data.items():
            if not inputs.get(method):
                raise OptionError(f"method {method} has no example inputs", where=STAGE)
            quantized[method] = quantize_aware(
                model, inputs[method][0], self._quantizer, self._train,
                schedule=self._schedule, progress=self._progress, passes=self._passes,
            )  # fmt: skip
        self._artifact = artifact.copy_with_new_data(quantized)


def quantize_aware(
    model: torch.nn.Module,
    example_inputs: Inputs,
    quantizer: Quantizer,
    train: TrainFunction,
    *,
    schedule: Schedule | None = None,
    progress: Callable[[str], None] | None = None,
    passes: Passes | None = None,
) -> GraphModule:
    """Train a copy of `model` with rounding in the loop; returns the converted, quantized module.

    Example:
        >>> quantized = quantize_aware(model, (image,), NeutronQuantizer(is_qat=True, per_channel=True), train)
    """
    passes = passes or Passes()
    prepared = prepare_training(model, example_inputs, quantizer, passes.pre_prepare)
    prepared = allow_exported_model_train_eval(_applied(passes.post_prepare, prepared))
    move_exported_model_to_train(prepared)
    run_training(prepared, train, schedule or Schedule(), progress)
    move_exported_model_to_eval(prepared)
    return _applied(passes.post_convert, convert_pt2e(_applied(passes.pre_convert, prepared)))


def prepare_training(
    model: torch.nn.Module, example_inputs: Inputs, quantizer: Quantizer, passes: Sequence[GraphPass] = ()
) -> GraphModule:
    """A trainable copy of `model` with simulated rounding, for any batch size."""
    captured = _applied(passes, remove_guards(_capture(copy.deepcopy(model).train(), example_inputs)))
    return allow_exported_model_train_eval(prepare_qat_pt2e(captured, quantizer))


def _applied(passes: Sequence[GraphPass], model: GraphModule) -> GraphModule:
    for step in passes:
        model = step(model)
    return model


def _capture(model: torch.nn.Module, inputs: Inputs) -> GraphModule:
    """The model exported in training mode, with a free batch size where all inputs share one."""
    sizes = {x.shape[0] for x in inputs if isinstance(x, torch.Tensor) and x.dim()}
    wide, shapes = inputs, None
    if len(sizes) == 1:
        batch = torch.export.Dim("batch", min=1)
        shapes = tuple({0: batch} if isinstance(x, torch.Tensor) and x.dim() else None for x in inputs)
        # A batch of one would be taken for a constant.
        wide = tuple(torch.cat([x, x]) if isinstance(x, torch.Tensor) and x.dim() else x for x in inputs)
    try:
        return torch.export.export(model, wide, dynamic_shapes=shapes).module()
    except Exception as error:
        first = (str(error).strip().splitlines() or ["no message"])[0]
        raise OpenNeutronError(
            f"the model cannot be exported for training: {type(error).__name__}: {first}", where=STAGE,
            hint="run torch.export.export(model.train(), inputs, dynamic_shapes=…) alone to see the whole error",
        ) from error  # fmt: skip
