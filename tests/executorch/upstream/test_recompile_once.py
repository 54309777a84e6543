"""Recompiling once leaves the modules that recompiling each time leaves."""

from __future__ import annotations

import copy

import pytest
import torch
from torch.fx import GraphModule, symbolic_trace

from openneutron.executorch.upstream.recompile_once import recompile_once


class _Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * 2


def _doubled(module: GraphModule) -> None:
    """Multiply by 4 in place of 2."""
    (node,) = (one for one in module.graph.nodes if one.op == "call_function" and 2 in one.args)
    node.args = (node.args[0], node.args[1] * 2)
    module.recompile()


def test_the_source_is_written_once_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[GraphModule] = []
    module, real = symbolic_trace(_Twice()), GraphModule.recompile
    monkeypatch.setattr(GraphModule, "recompile", lambda self: (written.append(self), real(self))[1])
    with recompile_once():
        _doubled(module)
        module.recompile()
        copied = GraphModule(module, copy.deepcopy(module.graph))
        assert not written
    assert written == [module, copied]
    assert "* 4" in module.code
    assert module(torch.ones(1)) == copied(torch.ones(1)) == 4


def test_a_module_whose_graph_another_took_over_is_written_when_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[GraphModule] = []
    module, real = symbolic_trace(_Twice()), GraphModule.recompile
    monkeypatch.setattr(GraphModule, "recompile", lambda self: (written.append(self), real(self))[1])
    with recompile_once():
        _doubled(module)
        heir = GraphModule(module, module.graph)
    assert written == [heir]
    assert module(torch.ones(1)) == heir(torch.ones(1)) == 4
    assert written == [heir, module]


def test_a_module_that_runs_inside_is_up_to_date() -> None:
    module = symbolic_trace(_Twice())
    with recompile_once():
        _doubled(module)
        assert module(torch.ones(1)) == 4
        made = GraphModule(torch.nn.Module(), module.graph)
        assert made(torch.ones(1)) == 4
    assert module(torch.ones(1)) == made(torch.ones(1)) == 4


def test_what_fails_leaves_modules_that_run() -> None:
    module = symbolic_trace(_Twice())
    with pytest.raises(KeyError), recompile_once():
        _doubled(module)
        raise KeyError
    assert module(torch.ones(1)) == 4
    module.recompile()
    assert "* 4" in module.code


def test_a_module_that_nobody_ran_can_be_printed() -> None:
    with recompile_once():
        assert "GraphModule" in str(GraphModule(torch.nn.Module(), symbolic_trace(_Twice()).graph))
