from __future__ import annotations

import importlib
import subprocess
import sys
from importlib.resources import files

import pytest
import torch
from ruamel.yaml import YAML

from openneutron.executorch.exporter import read_by_libyaml, remove_functionalized


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


def test_the_types_of_operators_are_read_as_before() -> None:
    text = files("executorch.exir.dialects.edge").joinpath("edge.yaml").read_text("utf-8")
    own = YAML.load
    with read_by_libyaml():
        assert YAML.load is not own
        fast = YAML(typ="safe").load(text)
    assert YAML.load is own and len(fast) > 100 and fast == YAML(typ="safe").load(text)


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


@pytest.mark.full
def test_the_exporter_comes_without_the_inductor() -> None:
    code = """
import sys
from openneutron.executorch.exporter import load_exporter
load_exporter()
import openneutron.executorch.pipeline
assert "executorch.exir.program" in sys.modules and "torch._inductor.lowering" not in sys.modules
assert "torch.export._remove_auto_functionalized_pass" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
