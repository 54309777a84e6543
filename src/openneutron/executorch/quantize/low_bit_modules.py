"""Modules whose weights torchao's `quantize_` has replaced: they become plain weights, and the choice to store them in 4 bits.

Only torchao's own kernels compute with its tensors. Their activations are float, or quantized at run time; here activations
get ranges from the calibration data, as in any other model.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from glob import escape
from typing import Any

import torch
from torchao.utils import TorchAOBaseTensor

from openneutron.errors import UnsupportedError
from openneutron.executorch.quantize.choices import Choices, LayerChoice
from openneutron.litert.grouped_weights import GROUP_SIZES

_FOUR_BITS = frozenset({"torch.int1", "torch.int2", "torch.int3", "torch.int4", "torch.uint4"})


def with_plain_weights(model: Any, chosen: Choices) -> tuple[Any, Choices, tuple[str, ...]]:
    """Return a copy with plain weights, choices that keep their bits where the layers' own say nothing else, and notes.

    A model without such weights is returned as it is. An importer may have found 4-bit weights itself (`low_bit_layers`).

    Example:
        >>> quantize_(model, IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)))
        >>> model, chosen, notes = with_plain_weights(model, Choices())
    """
    if not isinstance(model, torch.nn.Module):
        return model, chosen, ()
    imported = [
        LayerChoice(escape(name), weights="int4", group_size=size)
        for module in model.modules()
        for name, size in getattr(module, "low_bit_layers", {}).items()
    ]
    packed = {name: value for name, value in model.named_parameters() if isinstance(value, TorchAOBaseTensor)}
    if imported:
        note = f"{len(imported)} layers have weights of 4 bits, which stay so; activations get static ranges"
        return model, replace(chosen, layers=(*imported, *chosen.layers)), (note,)
    if not packed:
        return model, chosen, ()
    kept: dict[int, Any] = {id(value): value for value in (*model.parameters(), *model.buffers())}
    kept |= {id(value): _plain(name, value) for name, value in packed.items()}
    layers = [_choice(name, value) for name, value in packed.items()]
    four = [one for one in layers if one is not None]
    note = f"{len(packed)} weights that torchao quantized: {len(four)} stay in 4 bits; activations get static ranges"
    return copy.deepcopy(model, kept), replace(chosen, layers=(*four, *chosen.layers)), (note,)


def _plain(name: str, value: torch.Tensor) -> torch.nn.Parameter:
    try:
        plain = value.dequantize().detach().float()
    except (NotImplementedError, RuntimeError) as error:
        raise UnsupportedError(
            f"parameter {name} is a {type(value).__name__}, which torchao cannot turn into float here: {error}",
            hint="quantize with IntxWeightOnlyConfig, whose weights every machine reads",
        ) from error
    return torch.nn.Parameter(plain, requires_grad=False)


def _choice(name: str, value: Any) -> LayerChoice | None:
    """Return the choice of 4 bits for the layer of a weight; None for weights of more bits, or in groups of other sizes."""
    bits, inputs = str(getattr(value, "target_dtype", "")), value.shape[-1]
    group = int((0, *getattr(value, "block_size", ()))[-1])
    if bits not in _FOUR_BITS and "Int4" not in type(value).__name__:
        return None
    size = 0 if group == inputs else next((one for one in sorted(GROUP_SIZES, reverse=True) if group % one == 0), None)
    if size is None or group <= 0:
        return None
    return LayerChoice(name.rpartition(".")[0], weights="int4", group_size=size)
