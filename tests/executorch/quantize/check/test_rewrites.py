"""Every rewrite is checked on the user's data: wrong ones are undone and named, right ones stay."""

from __future__ import annotations

import torch
from torch.export import export
from torch.fx import GraphModule

import openneutron
from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize import passes
from openneutron.executorch.quantize.check.rewrites import RewriteCheck

X = torch.linspace(-4, 4, 64).reshape(1, 64)


def wrong_sigmoid(model: GraphModule) -> int:
    """A rewrite that is right below 1 alone: what is behind it saturates."""
    found = [node for node in model.graph.nodes if operator_name(node) == "aten.sigmoid.default"]
    for node in found:
        with model.graph.inserting_before(node):
            made = model.graph.call_function(torch.ops.aten.hardsigmoid.default, (node.args[0],))
        made.meta = dict(node.meta)
        node.replace_all_uses_with(made)
        model.graph.erase_node(node)
    return len(found)


def right_sigmoid(model: GraphModule) -> int:
    """The same function in other operators."""
    found = [node for node in model.graph.nodes if operator_name(node) == "aten.sigmoid.default"]
    for node in found:
        with model.graph.inserting_before(node):
            half = model.graph.call_function(torch.ops.aten.mul.Tensor, (node.args[0], 0.5))
            tanh = model.graph.call_function(torch.ops.aten.tanh.default, (half,))
            scaled = model.graph.call_function(torch.ops.aten.mul.Tensor, (tanh, 0.5))
            made = model.graph.call_function(torch.ops.aten.add.Tensor, (scaled, 0.5))
        for one in (half, tanh, scaled, made):
            one.meta = dict(node.meta)
        node.replace_all_uses_with(made)
        model.graph.erase_node(node)
    return len(found)


def wrong_in_place(model: GraphModule) -> int:
    """An operator edited in place instead of replaced."""
    for node in model.graph.nodes:
        if operator_name(node) == "aten.sigmoid.default":
            node.target = torch.ops.aten.tanh.default
    return 1


def breaks(model: GraphModule) -> int:
    """A rewrite whose result does not run."""
    for node in list(model.graph.nodes):
        if operator_name(node) == "aten.sigmoid.default":
            with model.graph.inserting_before(node):
                made = model.graph.call_function(torch.ops.aten.view.default, (node.args[0], [7, 7]))
            made.meta = dict(node.meta)
            node.replace_all_uses_with(made)
            model.graph.erase_node(node)
    return 1


class Gated(torch.nn.Module):
    """Two gates, the first hidden behind a step."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(self.linear(x))
        return torch.relu(gate * 1000 - 1).clamp(max=1.0) + torch.tanh(x)


def checked(*steps: object, model: torch.nn.Module | None = None) -> tuple[RewriteCheck, list[str], GraphModule]:
    torch.manual_seed(0)
    module = export((model or Gated()).eval(), (X,)).module(check_guards=False)
    check = RewriteCheck(module, [(X,)])
    check.run(steps)  # type: ignore[arg-type]
    check.settle()
    return check, [operator_name(node) for node in module.graph.nodes], module


def test_a_wrong_rewrite_is_undone_though_what_is_behind_hides_it() -> None:
    torch.manual_seed(0)
    wanted = Gated().eval()(X)
    check, names, module = checked(wrong_sigmoid)
    assert "aten.sigmoid.default" in names and "aten.hardsigmoid.default" not in names
    assert torch.equal(module(X), wanted)
    (note,) = check.notes
    assert note.startswith("wrong_sigmoid was undone at aten.sigmoid.default (sigmoid, test_rewrites.py:")


def test_a_right_rewrite_stays_beside_a_wrong_one() -> None:
    def tanh_to_clamp(model: GraphModule) -> int:
        for node in list(model.graph.nodes):
            if operator_name(node) == "aten.tanh.default" and node.args[0].op == "placeholder":
                with model.graph.inserting_before(node):
                    made = model.graph.call_function(torch.ops.aten.clamp.default, (node.args[0], -1.0, 1.0))
                made.meta = dict(node.meta)
                node.replace_all_uses_with(made)
                model.graph.erase_node(node)
        return 1

    check, names, _ = checked(right_sigmoid, tanh_to_clamp)
    assert "aten.sigmoid.default" not in names and names.count("aten.tanh.default") == 2
    assert [note.split()[0] for note in check.notes] == ["tanh_to_clamp"]


def test_a_rewrite_that_is_wrong_on_a_late_sample_alone_is_undone() -> None:
    def without_clamp(model: GraphModule) -> int:
        (node,) = (node for node in model.graph.nodes if operator_name(node) == "aten.clamp.default")
        node.replace_all_uses_with(node.args[0])
        model.graph.erase_node(node)
        return 1

    class Clamped(torch.nn.Module):
        def __init__(self, *, keeps_state: bool) -> None:
            super().__init__()
            self.register_buffer("last", torch.zeros(1, 64))
            self.keeps_state = keeps_state

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.tanh(x.clamp(-1, 1)) + self.last
            if self.keeps_state:
                self.last.copy_(x * 0.1)
            return y

    for keeps_state in (False, True):
        samples = [(X * (0.2 if at != 37 else 1.0),) for at in range(50)]
        module = export(Clamped(keeps_state=keeps_state).eval(), (X,)).module(check_guards=False)
        check = RewriteCheck(module, samples)
        check.run([without_clamp])
        check.settle()
        assert [note.split(" at ")[0] for note in check.notes] == ["without_clamp was undone"]
        assert "aten.clamp.default" in [operator_name(node) for node in module.graph.nodes]
        assert len(check.samples) == (38 if keeps_state else 5)


def test_right_rewrites_leave_no_note() -> None:
    check, names, _ = checked(right_sigmoid)
    assert not check.notes and "aten.sigmoid.default" not in names


def test_operators_edited_in_place_and_graphs_that_fail_are_put_back() -> None:
    for step in (wrong_in_place, breaks):
        torch.manual_seed(0)
        wanted = Gated().eval()(X)
        check, names, module = checked(step)
        assert names.count("aten.sigmoid.default") == 1 and len(check.notes) == 1, step.__name__
        assert torch.equal(module(X), wanted)


def test_a_wrong_pass_in_the_list_reaches_the_report(monkeypatch) -> None:
    monkeypatch.setattr(passes, "PASSES", (*passes.PASSES, wrong_sigmoid))
    torch.manual_seed(0)
    model = Gated().eval()
    program = openneutron.compile(model, (X,), calibration=[(X,), (X * 0.9,)])
    assert any("wrong_sigmoid was undone at aten.sigmoid.default" in note for note in program.report.notes)
    result = program.run(X)[0]
    assert float((result - model(X)).square().mean().sqrt()) < 0.05


def test_a_comparison_sees_what_decibels_do_not() -> None:
    class Compared(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.where(torch.relu(x) > 0, x, x * 0.1)

    def leaks(model: GraphModule) -> int:
        for node in list(model.graph.nodes):
            if operator_name(node) == "aten.relu.default":
                with model.graph.inserting_before(node):
                    made = model.graph.call_function(torch.ops.aten.clamp.default, (node.args[0], 1e-9))
                made.meta = dict(node.meta)
                node.replace_all_uses_with(made)
                model.graph.erase_node(node)
        return 1

    check, names, _ = checked(leaks, model=Compared())
    assert "aten.relu.default" in names and "aten.gt" in check.notes[0]
