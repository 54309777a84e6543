"""Programs are written without Inductor, and come out as with it."""

from __future__ import annotations

import importlib

import pytest
import torch

from openneutron.executorch.upstream.leave_inductor_out import remove_functionalized


class Unread(torch.nn.Module):
    """A copy of a tensor onto itself, and a sum that nobody reads, once they are written into its graph below."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) + 1


def _program() -> torch.export.ExportedProgram:
    program = torch.export.export(Unread(), (torch.randn(2, 3),))
    relu = next(node for node in program.graph.nodes if node.target is torch.ops.aten.relu.default)
    with program.graph.inserting_after(relu):
        copied = program.graph.call_function(torch.ops.aten.copy_.default, (relu, relu))
    with program.graph.inserting_after(copied):
        program.graph.call_function(torch.ops.aten.add.Tensor, (relu, 2))
    relu.replace_all_uses_with(copied, delete_user_cb=lambda user: user is not copied)
    program.graph_module.recompile()
    return program


def test_a_program_without_wrapped_operators_is_left_as_torch_leaves_it() -> None:
    theirs = importlib.import_module("torch.export._remove_auto_functionalized_pass")
    one, two = _program(), _program()
    found, wanted = remove_functionalized(one), theirs.unsafe_remove_auto_functionalized_pass(two)
    assert str(found.graph) == str(wanted.graph) and found is one
    assert [str(node.target) for node in found.graph.nodes] == ["x", "aten.relu.default", "aten.add.Tensor", "output"]


def test_wrapped_operators_are_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = importlib.import_module("torch.export._remove_auto_functionalized_pass")
    seen: list[object] = []
    monkeypatch.setattr(
        theirs, "unsafe_remove_auto_functionalized_pass", lambda program: seen.append(program) or program
    )
    program = _program()
    with program.graph.inserting_before(next(iter(program.graph.nodes))):
        program.graph.call_function(torch.ops.higher_order.auto_functionalized, (torch.ops.aten.relu_.default,))
    assert remove_functionalized(program) is program and seen == [program]
