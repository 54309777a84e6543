"""The noise of single tensors: who computes and reads each, and that the noise of all is about their sum."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from openneutron.executorch.capture.export import export
from openneutron.executorch.quality.goals import measure_of
from openneutron.executorch.quality.tensors import QuantizedTensor, find_tensors, measure_noise
from openneutron.executorch.quality.trials import Trials, run_all_samples
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantize.measure.original import run_original
from tests.executorch.quality.networks import Stream, rows


class Counter(nn.Module):
    """Adds what it saw before."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)
        self.register_buffer("last", torch.zeros(1, 10, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.layer(x)) + self.last
        self.last.copy_(y * 0.5)
        return y


class Moves(nn.Module):
    """A value that is pooled, reshaped and joined with another."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.max_pool2d(self.layer(x), 2)
        return torch.cat([y, y * 2], 1).flatten(1)


def made(model: nn.Module, samples: list[tuple[torch.Tensor, ...]]) -> Trials:
    model.eval()
    wanted = run_original(model, samples)
    return Trials(export(model, samples[0]), samples, samples, wanted, lambda found: measure_of(found, wanted, None))


def names(tensor: QuantizedTensor) -> tuple[list[str], list[str]]:
    return sorted(one.name for one in tensor.makers), sorted(one.name for one in tensor.readers)


def test_makers_and_readers() -> None:
    trials = made(Stream(), rows())
    tensors = {tuple(names(one)[0]): names(one)[1] for one in find_tensors(trials.quantize(Choices()))}
    assert tensors[()] == ["linear"] and tensors["linear",] == ["add", "linear_1"] and tensors["linear_4",] == []


def test_operators_that_move_data_are_one_tensor_with_their_input() -> None:
    samples = [(torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(at)),) for at in range(4)]
    tensors = find_tensors(made(Moves(), samples).quantize(Choices()))
    assert [names(one)[0] for one in tensors] == [[], ["cat", "conv2d", "mul"]], [names(one)[1] for one in tensors]


def test_the_noise_of_all_is_about_the_sum() -> None:
    trials = made(Stream(), rows())
    module = trials.quantize(Choices())
    noise = measure_noise(module, find_tensors(module), trials.samples, trials.wanted)
    total = -10 * np.log10(noise.floor[0] + noise.alone[:, 0].sum())
    assert total == pytest.approx(trials.measure(Choices()).sqnr, abs=1.5)
    assert noise.floor[0] < noise.alone[:, 0].sum()


def test_states_are_left_as_they_are() -> None:
    trials = made(Counter(), rows())
    module = trials.quantize(Choices())
    before = run_all_samples(module, trials.samples)
    tensors = find_tensors(module)
    noise = measure_noise(module, tensors, trials.samples, trials.wanted)
    assert any(one.fixed for one in tensors) and np.isfinite(noise.alone).all()
    assert all(torch.equal(a, b) for a, b in zip(before, run_all_samples(module, trials.samples), strict=True))


def test_joined_pieces_have_a_column_each() -> None:
    trials = made(Stream(), rows())
    module = trials.quantize(Choices())
    labels = torch.zeros(1, 10, 4, dtype=torch.int32)
    labels[..., 2:] = 1
    noise = measure_noise(module, find_tensors(module), trials.samples, trials.wanted, [labels])
    assert noise.alone.shape == (len(find_tensors(module)), 2) and noise.floor.shape == (2,)
