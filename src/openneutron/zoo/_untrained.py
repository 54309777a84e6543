"""Untrained networks of the zoo: seeded weights, and normalisation statistics measured once and stored.

Random numbers come from numpy's PCG64 rather than torch, and the statistics from a file, so that a model has the same
bits on every machine and at every thread count. `training/calibrate_untrained.py` makes the files.
"""

from __future__ import annotations

import zlib
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from openneutron.errors import FormatError
from openneutron.zoo._model import ZooModel
from openneutron.zoo._store import packaged_path, read_arrays

# Enough for stable quantization ranges of random networks, few enough that the largest calibrates in seconds.
CALIBRATION_COUNT = 8
_Norm = nn.BatchNorm1d | nn.BatchNorm2d | nn.LayerNorm
_Layer: TypeAlias = nn.Conv1d | nn.Conv2d | nn.ConvTranspose2d | nn.Linear


def make_untrained(name: str, model: nn.Module, shape: tuple[int, ...], what: str) -> ZooModel:
    """Return ``model`` with seeded weights, stored statistics and seeded inputs of ``shape`` as a zoo model."""
    initialise(model, name)
    _load_statistics(model, f"{name}_statistics.npz")
    calibration: list[tuple[torch.Tensor, ...]] = [(one,) for one in seeded_inputs(name, shape, CALIBRATION_COUNT)]
    return ZooModel(
        name=name,
        description=f"{what}; untrained (seeded weights): for cycles and memory, not for accuracy",
        model=model.eval(),
        example_inputs=calibration[0],
        calibration=calibration,
        trained=False,
    )


def initialise(model: nn.Module, name: str) -> None:
    """Fill all weights with numbers that depend on ``name`` only.

    Convolutions and linear layers get He's normal distribution, recurrent ones unit variance. Gains and offsets of
    normalisations are spread, so that a compiler that drops or swaps one is found out.
    """
    random = _generator(name, "weights")
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, _Layer):
                deviation = np.sqrt(2.0 / _inputs_per_output(layer))
                layer.weight.copy_(_tensor(random.normal(0.0, deviation, tuple(layer.weight.shape))))
                if layer.bias is not None:
                    layer.bias.copy_(_tensor(random.normal(0.0, 0.1, tuple(layer.bias.shape))))
            elif isinstance(layer, nn.RNNBase):
                # Their gates saturate: unit variance keeps them varying, He's would saturate them.
                for parameter in layer.parameters():
                    deviation = 1.0 / np.sqrt(parameter.shape[-1]) if parameter.dim() > 1 else 0.1
                    parameter.copy_(_tensor(random.normal(0.0, deviation, tuple(parameter.shape))))
            elif isinstance(layer, _Norm):
                layer.weight.copy_(_tensor(random.uniform(0.5, 1.5, tuple(layer.weight.shape))))  # nosec B311
                layer.bias.copy_(_tensor(random.normal(0.0, 0.2, tuple(layer.bias.shape))))


def seeded_inputs(name: str, shape: tuple[int, ...], count: int, purpose: str = "inputs") -> list[torch.Tensor]:
    """Return ``count`` inputs of ``shape`` on the INT8 grid -1 … 127/128.

    Noise at two scales: blocks of 8 survive strides and pooling as the objects of an image do, single values do not.
    """
    random = _generator(name, purpose)
    inputs = []
    for _ in range(count):
        coarse = random.uniform(-0.7, 0.7, (*shape[:2], *(-(-side // 8) for side in shape[2:])))  # numpy's, seeded # nosec B311
        for axis in range(2, len(shape)):
            coarse = np.repeat(coarse, 8, axis=axis)
        cut = coarse[tuple(slice(side) for side in shape)]
        values = np.clip(np.round((cut + random.normal(0.0, 0.2, shape)) * 128), -128, 127) / 128
        inputs.append(_tensor(values))
    return inputs


def statistics(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return the normalisation statistics among the buffers of ``model``."""
    return {k: v for k, v in model.state_dict().items() if k.endswith((".running_mean", ".running_var"))}


def _inputs_per_output(layer: _Layer) -> float:
    """Return how many products make one output of a layer."""
    if isinstance(layer, nn.ConvTranspose2d):
        # [inputs, outputs, height, width]; a stride of n spreads each input over n outputs.
        return layer.weight[:, 0].numel() / (layer.stride[0] * layer.stride[1])
    return layer.weight[0].numel()


def _load_statistics(model: nn.Module, file: str) -> None:
    own = statistics(model)
    if not own:
        return
    path = packaged_path("weights", file)
    arrays = read_arrays(path)
    if {k: tuple(v.shape) for k, v in own.items()} != {k: v.shape for k, v in arrays.items()}:
        raise FormatError(
            "its entries are not the statistics of the model",
            where=str(path),
            hint="run training/calibrate_untrained.py after changing a topology",
        )
    with torch.no_grad():
        for key, buffer in own.items():
            buffer.copy_(torch.from_numpy(arrays[key]))


def _generator(name: str, purpose: str) -> np.random.Generator:
    # Python's own hash changes from process to process; this one does not.
    return np.random.default_rng(zlib.crc32(f"{name}/{purpose}".encode()))


def _tensor(values: NDArray[np.float64]) -> torch.Tensor:
    return torch.from_numpy(values.astype(np.float32))
