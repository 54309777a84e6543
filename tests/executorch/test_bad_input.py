"""Odd and broken models: the right result, or an error with a name before any file is written."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.cli.main import run
from openneutron.errors import OpenNeutronError
from openneutron.executorch.pipeline import Built, build, quantize
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.run.runtime import load_program
from tests.executorch.ordered import ordered

IMAGE = torch.linspace(-1, 1, 72).reshape(1, 2, 6, 6)


class Net(nn.Module):
    """A module with a convolution, whose forward is given."""

    def __init__(self, forward: Callable[[Any, torch.Tensor], Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm = nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2)
        self.norm.running_mean.uniform_(-1, 1)
        self.norm.running_var.uniform_(0.5, 2)
        self.register_buffer("shift", torch.linspace(0, 1, 2).reshape(1, 2, 1, 1))
        self.function = forward

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(self, x)


def in_place_on_a_view(net: Net, x: torch.Tensor) -> torch.Tensor:
    y = net.conv(x)
    y.view(1, -1)[:, :10].mul_(2.0)
    return torch.relu(y)


def in_place_before_another_reader(net: Net, x: torch.Tensor) -> torch.Tensor:
    y = net.conv(x)
    z = y + 0.25
    y.mul_(0.5)
    return z + y


def in_place_activation_seen_by_others(net: Net, x: torch.Tensor) -> torch.Tensor:
    y = net.conv(x)
    z = y.view(1, 2, 36)
    nn.functional.relu_(y)
    return z + 1.0


def half_filled(net: Net, x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros_like(x)
    y[:, :1] = net.conv(x)[:, :1]
    return torch.sigmoid(y)


class Weighted(nn.Module):
    """Weights that are an input of the program."""

    def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.relu(nn.functional.conv2d(x, w))


class Embedded(nn.Module):
    """Integers are added, a table is looked up at their sum, then a layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table, self.layer = nn.Embedding(7, 6), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(self.table(x + 1))


RIGHT: dict[str, Callable[[Net, torch.Tensor], Any]] = {
    "in place on a view": in_place_on_a_view,
    "in place before another reader": in_place_before_another_reader,
    "in place, seen through a view": in_place_activation_seen_by_others,
    "a part assigned": half_filled,
    "in-place activation": lambda net, x: nn.functional.relu_(net.conv(x)),
    "a module used twice": lambda net, x: net.conv(torch.sigmoid(net.conv(x))),
    "a norm behind one of two uses": lambda net, x: net.norm(net.conv(x)) + net.conv(x + 1.0),
    "a norm and another reader": lambda net, x: (net.norm(net.conv(x)), torch.relu(net.conv(x))),
    "an output that is an input": lambda net, x: (x, net.conv(x)),
    "an output given twice": lambda net, x: [torch.relu(net.conv(x))] * 2,
    "an output that another layer reads": lambda net, x: (y := net.conv(x), torch.sigmoid(y)),
    "an output that is a constant": lambda net, x: (net.conv(x), net.shift),
    "results nobody reads": lambda net, x: (net.conv(x), torch.sigmoid(x))[0],
    "pooling indices nobody reads": lambda net, x: nn.functional.max_pool2d(net.conv(x), 2, return_indices=True)[0],
    "parts nobody reads": lambda net, x: torch.split(net.conv(x), 1, dim=1)[1],
    "an island of float": lambda net, x: net.conv(ordered(net.conv(x))),
    "an island between branches": lambda net, x: torch.cat([ordered(net.conv(x)), net.conv(x)], 1),
    "a mask": lambda net, x: torch.where(x > 0, net.conv(x), torch.zeros_like(x)),
    "nested results": lambda net, x: {"a": net.conv(x), "b": (torch.sigmoid(x), [x + 1.0])},
}


def leaves(value: Any) -> list[torch.Tensor]:
    return torch.utils._pytree.tree_leaves(value)


def made(model: nn.Module, *inputs: torch.Tensor) -> tuple[Built, list[torch.Tensor]]:
    """The compiled model and its outputs; every node on the CPU says why."""
    built = build(model.eval(), inputs, calibration=[inputs])
    assert all(v.reason for v in built.report.nodes if not v.delegated)
    return built, list(load_program(built.pte).run(*inputs))


@pytest.mark.parametrize("name", RIGHT)
def test_odd_models_compute_what_pytorch_does(name: str) -> None:
    model = Net(RIGHT[name]).eval()
    with torch.no_grad():
        wanted = leaves(model(IMAGE.clone()))
    built, got = made(model, IMAGE)
    assert any(v.delegated for v in built.report.nodes)
    for y, t in zip(got, wanted, strict=True):
        assert y.shape == t.shape and (y - t).abs().max() <= 0.06 * max(1.0, float(t.abs().max())), name


def test_weights_from_outside_stay_on_the_cpu_with_their_reason() -> None:
    weights = torch.linspace(-1, 1, 4).reshape(2, 2, 1, 1)
    built, (y,) = made(Weighted(), IMAGE, weights)
    codes = {v.operator: v for v in built.report.nodes if not v.delegated}
    assert "computed at run time" in codes["aten.convolution.default"].reason
    assert torch.allclose(y, Weighted()(IMAGE, weights), atol=0.05)


def test_sums_of_integers_stay_on_the_cpu_and_a_lookup_does_not() -> None:
    model, words = Embedded().eval(), torch.tensor([[1, 0, 5, 4]])
    built, (y,) = made(model, words)
    left = [v.operator for v in built.report.nodes if not v.delegated and v.code != "border"]
    assert left == ["aten.add.Tensor"]
    assert "aten.embedding.default" in [v.operator for v in built.report.nodes if v.delegated]
    assert torch.allclose(y, model(words), atol=0.05)


def test_a_mutated_input_is_refused_or_mutated() -> None:
    """PyTorch's program changes its input; ours must not give the result without doing so."""
    model = Net(lambda net, x: net.conv(x.add_(1.0))).eval()
    given, wanted = IMAGE.clone(), IMAGE.clone()
    with torch.no_grad():
        y = model(wanted)
    try:
        built = build(model, (IMAGE.clone(),), calibration=[(IMAGE.clone(),)])
    except OpenNeutronError as error:
        assert "x" in str(error)
        return
    got = load_program(built.pte).run(given)
    assert (got[-1] - y).abs().max() <= 0.06 * y.abs().max()


def broken(change: Callable[[Net], Any], forward: Callable[[Net, torch.Tensor], Any] | None = None) -> Net:
    net = Net(forward or (lambda net, x: torch.relu(net.norm(net.conv(x)))))
    with torch.no_grad():
        change(net)
    return net


def scaled(scale: float) -> torch.export.ExportedProgram:
    """A quantized program, one of whose scales is changed."""
    program = quantize(Net(lambda net, x: torch.relu(net.conv(x))).eval(), (IMAGE,), [(IMAGE,)]).program
    for node in program.graph.nodes:
        if "quantize_per_tensor" in node.name and node.op == "call_function":
            node.update_arg(1, scale)
            break
    return program


def per_channel_zero() -> torch.export.ExportedProgram:
    program = quantize(Net(lambda net, x: net.conv(x)).eval(), (IMAGE,), [(IMAGE,)], Choices(per_channel=True)).program
    for name, value in {**program.state_dict, **program.constants}.items():
        if "scale" in name and isinstance(value, torch.Tensor) and value.numel() == 2:
            value[1] = 0.0
    return program


def dynamic() -> torch.export.ExportedProgram:
    image = torch.cat([IMAGE, IMAGE])
    shapes = {"x": {0: torch.export.Dim("batch", min=2, max=8)}}
    return torch.export.export(Net(lambda net, x: net.conv(x)).eval(), (image,), dynamic_shapes=shapes)


def bad(model: Any, image: torch.Tensor = IMAGE, sample: torch.Tensor | None = None) -> Callable[[], object]:
    return lambda: on.compile(model, (image,), calibration=[(image if sample is None else sample,)])


ERRORS: dict[str, tuple[Callable[[], object], str]] = {
    "NaN weight": (
        bad(broken(lambda net: net.conv.weight[1, 0, 2, 2].fill_(float("nan")))), "parameter conv.weight contains NaN"),
    "infinite weight": (
        bad(broken(lambda net: net.conv.weight[0, 0, 0, 0].fill_(float("inf")))), "parameter conv.weight contains infinity"),
    "infinite bias": (
        bad(broken(lambda net: net.conv.bias[0].fill_(float("-inf")))), "parameter conv.bias contains infinity"),
    "NaN statistic": (
        bad(broken(lambda net: net.norm.running_var[0].fill_(float("nan")))), "statistic norm.running_var contains NaN"),
    "NaN buffer": (bad(broken(lambda net: net.shift.fill_(float("nan")))), "buffer shift contains NaN"),
    "double weights": (
        bad(Net(lambda net, x: net.conv(x)).double(), IMAGE.double()), "parameter conv.weight is float64, not float32"),
    "half weights": (bad(Net(lambda net, x: net.conv(x)).half(), IMAGE.half()), "parameter conv.weight is float16"),
    "complex input": (bad(nn.Identity(), IMAGE.to(torch.complex64)), "example input 0 is complex64"),
    "NaN sample": (
        bad(Net(lambda net, x: net.conv(x)), sample=IMAGE * float("nan")), "input 0 of calibration sample 0 contains NaN"),
    "not initialized": (bad(nn.Sequential(nn.LazyConv2d(2, 1))), "parameter 0.weight is not initialized"),
    "no values": (bad(nn.Conv2d(2, 2, 1, device="meta")), "parameter weight is on the meta device"),
    "sparse input": (bad(Net(lambda net, x: net.conv(x)), IMAGE.to_sparse()), "example input 0 is sparse_coo, not dense"),
    "empty input": (bad(Net(lambda net, x: net.conv(x)), IMAGE[:0]), r"example_inputs\[0\] is empty: \[0, 2, 6, 6\]"),
    "TorchScript": (bad(torch.jit.trace(nn.Conv2d(2, 2, 1), IMAGE)), "the model is a TorchScript module"),
    "a text among the outputs": (
        bad(Net(lambda net, x: {"y": net.conv(x), "version": "v2"})), "the text 'v2' is among the outputs"),
    "integers for floats": (
        bad(nn.Linear(6, 2), torch.ones(1, 6, dtype=torch.int64)),
        "aten.linear.default .* fails on calibration sample 0: RuntimeError: mat1 and mat2 must have the same dtype"),
    "zero scale": (lambda: on.compile(scaled(0.0)), "quantize_per_tensor.* has a scale of 0"),
    "negative scale": (lambda: on.compile(scaled(-0.5)), "has a scale of -0.5"),
    "infinite scale": (lambda: on.compile(scaled(float("inf"))), "has a scale of inf"),
    "a channel's zero scale": (lambda: on.compile(per_channel_zero()), "dequantize_per_channel.* has a scale of 0"),
    "symbolic shapes": (lambda: on.compile(dynamic(), calibration=[(torch.cat([IMAGE, IMAGE]),)]), "dynamic shape"),
    "a size that depends on data": (
        bad(Net(lambda net, x: net.conv(x)[x > 0])), "shape|size|data"),
    "no operator at all": (bad(nn.Identity()), "no operator of the model can be quantized: it has none"),
    "only floats": (bad(Net(lambda net, x: ordered(x))), "no operator of the model can be quantized.*topk"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_broken_models_are_an_error_with_a_name(name: str) -> None:
    call, message = ERRORS[name]
    with pytest.raises(OpenNeutronError) as caught:
        call()
    assert re.search(message, str(caught.value)), str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_is_written_when_the_model_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = "import torch\ndef net():\n    m = torch.nn.Conv2d(2, 2, 1)\n    m.weight.data.fill_(float('nan'))\n"
    (tmp_path / "broken_model.py").write_text(f"{source}    return m, torch.zeros(1, 2, 4, 4)\n")
    before = {path.name for path in tmp_path.iterdir()} | {"__pycache__"}
    flags = ["-o", "net.pte", "--dump-kernel-selection", "--intermediates", "dumps"]
    assert run(["compile", "broken_model:net", *flags]) == 2
    assert "parameter weight contains NaN" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} | {"__pycache__"} == before
