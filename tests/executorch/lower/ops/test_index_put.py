"""A cache in a buffer, written at a position known only at run time: one graph, updated in place, equal in all spellings."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.errors import OpenNeutronError

CONTEXT = 5


class Cached(nn.Module):
    """Attention of one token over the rows written so far."""

    def __init__(self, spelling: str) -> None:
        super().__init__()
        self.spelling, self.project = spelling, nn.Linear(8, 8)
        self.register_buffer("cache", torch.zeros(1, 2, CONTEXT, 4))

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        row = self.project(x).view(1, 1, 2, 4).transpose(1, 2)
        if self.spelling == "index_copy_":
            self.cache.index_copy_(2, position, row)
        elif self.spelling == "slice":
            self.cache[:, :, position] = row
        else:
            torch.ops.aten.index_put_(self.cache, [None, None, position], row)
        return (row @ self.cache.transpose(-1, -2)).reshape(1, -1)


@pytest.mark.parametrize(("spelling", "activations"), [("index_copy_", "int8"), ("slice", "int16"), ("put", "int8")])
def test_a_cache_stays_on_the_npu(spelling: str, activations: str) -> None:
    torch.manual_seed(0)
    model = Cached(spelling).eval()
    samples = [(torch.randn(1, 8), torch.tensor([at])) for at in range(CONTEXT)]
    program = on.compile(model, samples[0], calibration=samples, activations=activations)
    left = {node.operator for node in program.report.nodes if not node.delegated}
    assert left == {f"quantized_decomposed.{kind}_per_tensor.default" for kind in ("quantize", "dequantize")}
    for sample in samples[:3]:
        want = model(*sample).detach().numpy()
        assert np.abs(np.asarray(program.run(*sample)[0]) - want).max() < (0.1 if activations == "int8" else 0.03)
    with pytest.raises(OpenNeutronError, match="lies outside its tensor"):
        program.run(samples[3][0], torch.tensor([CONTEXT]))
    want = model(*samples[3]).detach().numpy()
    assert np.abs(np.asarray(program.run(*samples[3])[0]) - want).max() < (0.1 if activations == "int8" else 0.03)


def test_several_positions_stay_on_the_cpu() -> None:
    class Rows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("cache", torch.zeros(6, 4))

        def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
            self.cache.index_copy_(0, positions, torch.relu(x))
            return self.cache * 2

    samples = [(torch.randn(2, 4), torch.tensor([1, 4]))]
    program = on.compile(Rows(), samples[0], calibration=samples)
    (reason,) = {node.reason for node in program.report.nodes if node.operator == "aten.index_put.default"}
    assert "2 positions are given" in reason
