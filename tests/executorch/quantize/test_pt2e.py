"""PT2E's steps: what recurrent layers share is worked out once."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.observer import HistogramObserver

from openneutron.executorch.capture.export import export
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.pt2e import calibrate, convert, prepare


class _Gru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(6, 5, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gru(x)[0]


def test_an_observer_that_all_steps_share_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 4, 6)
    prepared = prepare(export(_Gru().eval(), (x,)), NeutronQuantizer())
    calibrate(prepared, [(x,)])
    asked: Counter[HistogramObserver] = Counter()
    answer = HistogramObserver.calculate_qparams

    def counted(self: HistogramObserver) -> object:
        asked[self] += 1
        return answer(self)

    monkeypatch.setattr(HistogramObserver, "calculate_qparams", counted)
    shared = len({id(one) for one in prepared.modules() if isinstance(one, HistogramObserver)})
    calls = [node for node in prepared.graph.nodes if node.op == "call_module"]
    made = convert(prepared)
    assert set(asked.values()) == {1} and len(asked) == shared < len(calls) / 3
    for node in made.graph.nodes:
        assert node.op != "call_module"
