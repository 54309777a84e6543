"""A partition whose outputs ExecuTorch returns in another order than it was tried in."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from openneutron.executorch.deliver.session import Trial
from openneutron.executorch.lower.lowering import Lowered
from openneutron.executorch.pipeline import Built, build
from openneutron.executorch.run.runtime import load_program
from openneutron.litert.read import read_model

IMAGE = (torch.linspace(-1, 1, 192).reshape(1, 3, 8, 8),)


class Apart(nn.Module):
    """Behind a first partition ExecuTorch sorts by depth: the second result of the second partition comes first."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.deep, self.deeper = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 5, 1), nn.Conv2d(5, 6, 1)
        self.shallow = nn.Conv2d(4, 7, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.floor(self.first(x))
        return self.deeper(self.deep(y)), self.shallow(y)


def built() -> Built:
    return build(Apart().eval(), IMAGE, calibration=[IMAGE], operators_not_to_delegate=("aten.floor.default",))


def channels(litert: bytes) -> list[int]:
    main = read_model(litert, source="test").main
    return [main.tensors[index].shape[-1] for index in main.outputs]


def test_the_trial_is_delivered_with_its_outputs_in_the_delegates_order(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []
    in_nodes_of = Trial.in_nodes_of

    def counted(*asked: Any) -> Lowered | None:
        lowered = in_nodes_of(*asked)
        found.append(lowered is not None)
        return lowered

    monkeypatch.setattr(Trial, "in_nodes_of", counted)
    program = built()
    assert found == [True, True]
    partition = program.partitions[1]
    assert channels(partition.litert) == channels(partition.converted) == [7, 6]
    results = load_program(program.pte).run(*IMAGE)
    assert [result.shape[1] for result in results] == [6, 7]
    monkeypatch.setattr(Trial, "in_nodes_of", lambda *asked: None)
    again = load_program(built().pte).run(*IMAGE)
    assert all(torch.equal(one, other) for one, other in zip(results, again, strict=True))
