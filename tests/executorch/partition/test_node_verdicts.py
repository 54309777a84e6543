"""Why a node outside the quantized part stays on the CPU, in words that a user can act on."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from openneutron.executorch.partition.node_verdicts import _of_float

REASONS = {
    torch.int8: "it works on stored INT8 numbers, the NPU on activations whose scale it knows",
    torch.int64: "it works on int64, the NPU on INT8 activations",
}


class Negate(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return -x


@pytest.mark.parametrize("dtype", REASONS, ids=str)
def test_integers_without_a_scale_are_told_from_activations(dtype: torch.dtype) -> None:
    program = torch.export.export(Negate(), (torch.zeros(2, 3, dtype=dtype),))
    (node,) = (one for one in program.graph.nodes if one.op == "call_function")
    reason = _of_float(node)
    assert reason.code == "other_type" and reason.message == REASONS[dtype] and reason.hint
