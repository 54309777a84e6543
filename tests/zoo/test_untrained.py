"""Untrained models: the same bits in every process, statistics that belong to the weights."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from openneutron.errors import FormatError
from openneutron.zoo import _untrained
from openneutron.zoo.ds_cnn import DsCnn, load

FINGERPRINT = """
import hashlib, sys, torch
torch.set_num_threads(int(sys.argv[1]))
from openneutron import zoo
loaded = zoo.load("ds_cnn")
digest = hashlib.sha256()
for tensor in [*loaded.model.state_dict().values(), *(inputs[0] for inputs in loaded.calibration)]:
    digest.update(tensor.numpy().tobytes())
print(digest.hexdigest())
"""


def test_same_bits_with_other_hash_seed_and_thread_count() -> None:
    def fingerprint(hash_seed: str, threads: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", FINGERPRINT, threads]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    assert fingerprint("1", "1") == fingerprint("2", "2")


def test_normalisations_see_zero_mean_and_unit_variance() -> None:
    loaded = load()
    seen: list[torch.Tensor] = []

    def look(layer: nn.BatchNorm2d, _: object, output: torch.Tensor) -> None:
        seen.append((output - layer.bias[:, None, None]) / layer.weight[:, None, None])

    for layer in loaded.model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.register_forward_hook(look)
    with torch.no_grad():
        loaded.model(torch.cat([inputs[0] for inputs in loaded.calibration]))
    assert len(seen) == 9
    for normalised in seen:
        assert abs(normalised.mean().item()) < 0.2
        assert 0.7 < normalised.std().item() < 1.3


def test_seeded_inputs_lie_on_the_int8_grid_and_differ() -> None:
    first, second = _untrained.seeded_inputs("any", (1, 3, 20, 17), 2)
    assert first.shape == (1, 3, 20, 17)
    grid = first * 128
    assert torch.equal(grid, grid.round())
    assert grid.min() >= -128 and grid.max() <= 127
    assert not torch.equal(first, second)
    assert torch.equal(first, _untrained.seeded_inputs("any", (1, 3, 20, 17), 1)[0])


def test_weights_depend_on_the_name() -> None:
    one, other = DsCnn(), DsCnn()
    _untrained.initialise(one, "one")
    _untrained.initialise(other, "other")
    digests = {hashlib.sha256(m.classifier.weight.detach().numpy().tobytes()).hexdigest() for m in (one, other)}
    assert len(digests) == 2


def test_statistics_of_another_topology_are_refused() -> None:
    with pytest.raises(FormatError, match=r"ds_cnn_statistics\.npz: its entries are not the statistics of the model"):
        _untrained.make_untrained("ds_cnn", nn.Sequential(nn.BatchNorm2d(3)), (1, 3, 8, 8), "wrong")
