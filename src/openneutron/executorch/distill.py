"""Quantization-aware training without labels: the quantized model learns to answer as the float one does.

Example:
    >>> quantized, program = distill(model, (image,), [(image,) for image in images])
    >>> openneutron.compile(program)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule
from torch.utils import _pytree as pytree

from openneutron.executorch.export import Inputs, converted, evaluation, export, one_thread
from openneutron.executorch.passes.aten.fold_batch_norm import fold_batch_norm
from openneutron.executorch.passes.aten.remove_dropout import remove_dropout
from openneutron.executorch.quantizer import NeutronQuantizer
from openneutron.executorch.stages import Stages

# Two passes over the data settle the moving averages of the ranges; more would begin to fit so few samples.
EPOCHS = 2
# Weights shall move by less than a step of INT8 per sample: a tensor of range 1 has steps of 1/127.
LEARNING_RATE = 1e-5


def distill(
    model: torch.nn.Module,
    example_inputs: Inputs,
    batches: Sequence[Inputs],
    *,
    epochs: int = EPOCHS,
    per_channel: bool = False,
    stages: Stages | None = None,
) -> tuple[GraphModule, ExportedProgram]:
    """Train a copy of the model with simulated quantization; returns it converted, and its exported program.

    Batch norms are folded before: their statistics are those of the original training. The given model and the global
    random state stay as they are.
    """
    from torchao.quantization.pt2e.quantize_pt2e import prepare_qat_pt2e

    stages = stages or Stages()
    with evaluation(model), torch.no_grad():
        with stages("exporting"):
            exported = export(model, example_inputs)
        wanted = [pytree.tree_leaves(model(*batch)) for batch in batches]
    module = exported.module()
    fold_batch_norm(module)
    remove_dropout(module)
    _make_trainable(module)
    with stages("preparing for quantization"):
        prepared = prepare_qat_pt2e(module, NeutronQuantizer(is_qat=True, per_channel=per_channel))
    with stages("training"), one_thread():
        _train(prepared, batches, wanted, epochs)
    with stages("quantizing"):
        quantized = converted(prepared)
    with stages("exporting again"):
        return quantized, export(quantized, example_inputs, what="the quantized model")


def _make_trainable(module: GraphModule) -> None:
    """Folded weights are buffers; make parameters of them. What was exported shares its storage with the model: copy."""
    for name, buffer in list(module.named_buffers(recurse=False)):
        if name.startswith("_folded_") and buffer.is_floating_point():
            delattr(module, name)
            module.register_parameter(name, torch.nn.Parameter(buffer.clone()))
    for parameter in module.parameters():
        parameter.data = parameter.data.clone()


def _train(prepared: GraphModule, batches: Sequence[Inputs], wanted: Sequence[list[torch.Tensor]], epochs: int) -> None:
    optimizer = torch.optim.Adam([p for p in prepared.parameters() if p.requires_grad], LEARNING_RATE)
    for _ in range(epochs):
        for batch, answers in zip(batches, wanted, strict=True):
            optimizer.zero_grad()
            results = pytree.tree_leaves(prepared(*batch))
            loss = sum((y - t).square().mean() for y, t in zip(results, answers, strict=True))
            if isinstance(loss, torch.Tensor) and loss.requires_grad:
                loss.backward()
                optimizer.step()
