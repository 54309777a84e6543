"""Regions are found by comparing graphs, whatever a pass did."""

from __future__ import annotations

import torch
from torch.export import export

from openneutron.executorch.quantize.check.put_back import put_back
from openneutron.executorch.quantize.check.regions import boundaries, edited_nodes, snapshot
from openneutron.executorch.quantize.passes.recognize.recognize_softmax import recognize_softmax


class WrittenSoftmax(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        e = torch.exp(x - x.amax(-1, keepdim=True))
        return (e / e.sum(-1, keepdim=True)) * 2


X = torch.linspace(-3, 3, 32).reshape(2, 16)


def test_a_region_ends_where_other_operators_read_it() -> None:
    model = export(WrittenSoftmax(), (X,)).module(check_guards=False)
    before = snapshot(model.graph)
    assert boundaries(before, model.graph) == []
    recognize_softmax(model)
    (one,) = boundaries(before, model.graph)
    assert (one.old.name, one.new.name, [reader.name for reader in one.readers]) == ("div", "div_softmax", ["mul"])
    assert edited_nodes(before, model.graph) == []


def test_a_region_put_back_computes_what_it_did() -> None:
    model = export(WrittenSoftmax(), (X,)).module(check_guards=False)
    wanted, before = model(X), snapshot(model.graph)
    recognize_softmax(model)
    found = boundaries(before, model.graph)
    back = put_back(model.graph, before, found, found)
    model.recompile()
    assert torch.equal(model(X), wanted) and len(back) == 5
    assert all("softmax" not in node.name for node in model.graph.nodes)
