"""Quantization-aware training: prepare, call the user's train function, convert. Independent of the backend."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule
from torchao.quantization.pt2e import (
    allow_exported_model_train_eval,
    move_exported_model_to_eval,
    move_exported_model_to_train,
)
from torchao.quantization.pt2e.fake_quantize import FakeQuantizeBase
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e
from torchao.quantization.pt2e.quantizer import Quantizer

from openneutron.errors import OpenNeutronError
from openneutron.executorch.capture.export import one_thread
from openneutron.executorch.quantize.accuracy import SAMPLES, run_all
from openneutron.executorch.quantize.pt2e import remove_guards
from openneutron.executorch.quantize.states import restore, states_of
from openneutron.executorch.quantize.train.training import STAGE, Schedule, TrainFunction, run_training
from openneutron.executorch.upstream.skip_absent_convs import skip_absent_convs

Inputs = tuple[Any, ...]
GraphPass = Callable[[GraphModule], GraphModule]


@dataclass(frozen=True)
class Passes:
    """Graph passes around preparing and converting, by the names of ExecuTorch's `QuantizationRecipe`."""

    pre_prepare: Sequence[GraphPass] = ()
    post_prepare: Sequence[GraphPass] = ()
    pre_convert: Sequence[GraphPass] = ()
    post_convert: Sequence[GraphPass] = ()


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
        >>> quantized = quantize_aware(model, (image,), NeutronQuantizer(is_qat=True), train)
    """
    return train_quantized(
        model, example_inputs, quantizer, train, schedule=schedule, progress=progress, passes=passes
    ).module


@dataclass(frozen=True)
class Trained:
    """The quantized module, and the results `wanted` of the trained network in float on inputs of its training."""

    module: GraphModule
    samples: tuple[Inputs, ...]
    wanted: tuple[Any, ...]
    warnings: tuple[str, ...] = ()


def train_quantized(
    model: torch.nn.Module,
    example_inputs: Inputs,
    quantizer: Quantizer,
    train: TrainFunction,
    *,
    schedule: Schedule | None = None,
    progress: Callable[[str], None] | None = None,
    passes: Passes | None = None,
) -> Trained:
    """Train as `quantize_aware` does, and return what the quantized module can be compared with too."""
    passes = passes or Passes()
    prepared = prepare_training(model, example_inputs, quantizer, passes.pre_prepare)
    prepared = allow_exported_model_train_eval(_apply_passes(passes.post_prepare, prepared))
    move_exported_model_to_train(prepared)
    training = run_training(prepared, train, schedule or Schedule(), progress)
    move_exported_model_to_eval(prepared)
    samples = _rows(training.seen, example_inputs)
    wanted = _run_in_float(prepared, samples)
    with skip_absent_convs():
        module = convert_pt2e(_apply_passes(passes.pre_convert, prepared))
    module = _apply_passes(passes.post_convert, module)
    return Trained(module, tuple(samples), tuple(wanted), training.warnings)


def _rows(seen: Sequence[Inputs], example_inputs: Inputs) -> list[Inputs]:
    """Cut the batches of a training into samples of the size of the example inputs; others are left out."""
    found: list[Inputs] = []
    sizes = [tuple(one.shape) for one in example_inputs]
    for batch in seen:
        if len(batch) != len(sizes) or any(
            tuple(x.shape[1:]) != size[1:] for x, size in zip(batch, sizes, strict=True)
        ):
            continue
        steps = [x.split(size[0]) if size else [x] for x, size in zip(batch, sizes, strict=True)]
        rows = zip(*steps, strict=False)
        found += [one for one in rows if [tuple(x.shape) for x in one] == sizes]
    return found[:SAMPLES]


def _run_in_float(prepared: GraphModule, samples: Sequence[Inputs]) -> list[Any]:
    """Run the trained network without its rounding; rounding and states are afterwards as before."""
    rounding = [one for one in prepared.modules() if isinstance(one, FakeQuantizeBase)]
    enabled = [(one, one.fake_quant_enabled.clone(), one.observer_enabled.clone()) for one in rounding]
    states = states_of(prepared)
    for one in rounding:
        one.disable_fake_quant()
        one.disable_observer()
    try:
        with one_thread():
            return run_all(prepared, samples)
    finally:
        for one, fake, observed in enabled:
            one.fake_quant_enabled.copy_(fake)
            one.observer_enabled.copy_(observed)
        restore(prepared, states)


def prepare_training(
    model: torch.nn.Module, example_inputs: Inputs, quantizer: Quantizer, passes: Sequence[GraphPass] = ()
) -> GraphModule:
    """A trainable copy of `model` with simulated rounding, for any batch size."""
    captured = _apply_passes(passes, remove_guards(_capture(copy.deepcopy(model).train(), example_inputs)))
    with skip_absent_convs():
        return allow_exported_model_train_eval(prepare_qat_pt2e(captured, quantizer))


def _apply_passes(passes: Sequence[GraphPass], model: GraphModule) -> GraphModule:
    for step in passes:
        model = step(model)
    return model


def _capture(model: torch.nn.Module, inputs: Inputs) -> GraphModule:
    """Export the model in training mode, with a dynamic batch size if all inputs share one."""
    sizes = {x.shape[0] for x in inputs if isinstance(x, torch.Tensor) and x.dim()}
    wide, shapes = inputs, None
    if len(sizes) == 1:
        batch = torch.export.Dim("batch", min=1)
        shapes = tuple({0: batch} if isinstance(x, torch.Tensor) and x.dim() else None for x in inputs)
        # torch.export would treat a batch of one as a constant.
        wide = tuple(torch.cat([x, x]) if isinstance(x, torch.Tensor) and x.dim() else x for x in inputs)
    try:
        return torch.export.export(model, wide, dynamic_shapes=shapes).module()
    except Exception as error:
        first = (str(error).strip().splitlines() or ["no message"])[0]
        raise OpenNeutronError(
            f"the model cannot be exported for training: {type(error).__name__}: {first}", where=STAGE,
            hint="run torch.export.export(model.train(), inputs, dynamic_shapes=…) alone to see the whole error",
        ) from error  # fmt: skip
