from __future__ import annotations

import copy
import gc
import itertools
from typing import Any

import pytest
import torch
from torch import nn

from openneutron.errors import OpenNeutronError, OptionError, UnsupportedError
from openneutron.executorch import pipeline
from openneutron.executorch.pipeline import build, compile_module
from openneutron.executorch.run.runtime import load_program
from openneutron.executorch.upstream import switch, versions
from tests.executorch.ordered import ordered

IMAGE = (torch.linspace(-1, 1, 192).reshape(1, 3, 8, 8),)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5))


class Shared(nn.Module):
    """A batch norm behind a convolution that something else reads, and one layer used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.twice = nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1)
        self.norm.running_mean.uniform_(-1, 1)
        self.norm.running_var.uniform_(0.5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        return self.twice(self.norm(y)) + self.twice(y) + y


class Islands(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        return self.second(y + torch.linspace(0, 1, 4).reshape(1, 4, 1, 1) * x.mean(1, keepdim=True))


def test_seconds_stages_and_quantized_module() -> None:
    heard: list[str] = []
    built = build(network(), IMAGE, calibration=[IMAGE], progress=heard.append)
    assert heard == [name for name in built.report.seconds if name != "compiler"]
    assert built.quantized is not None and built.quantized(*IMAGE).shape == (1, 5)
    assert built.report.totals.operators_converted == built.report.totals.operators_total > 0


def test_repeated_compiles_leave_no_graphs_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "_LOWERINGS_KEPT", 2)
    monkeypatch.setattr(pipeline, "_lowerings", itertools.count(1))
    program = pipeline.quantize(network(), IMAGE, [IMAGE]).program
    alive = []
    for _ in range(3):
        for _ in range(2):
            compile_module(program, None)
        gc.collect()
        alive.append(sum(type(one) is torch.fx.Node for one in gc.get_objects()))
    assert alive[1] <= alive[0] and alive[2] <= alive[1]


def test_debug_handles_tie_operators_to_nodes() -> None:
    report = build(network(), IMAGE, calibration=[IMAGE]).report
    handles = {node.debug_handle: node.operator for node in report.nodes if node.delegated}
    named = [[handles[handle] for handle in op.debug_handles] for op in report.operators]
    assert named[0] == ["aten.convolution.default", "aten.relu.default"]
    assert named[-1][-1] == "aten.addmm.default"
    assert all(kernel.operators for kernel in report.kernels)


def test_batch_norm_does_not_touch_another_consumer() -> None:
    torch.manual_seed(1)
    model = Shared().eval()
    wanted = model(*IMAGE)
    built = build(model, IMAGE, calibration=[IMAGE])
    (got,) = load_program(built.pte).run(*IMAGE)
    assert (got - wanted).abs().max() < 0.05 * wanted.abs().max()
    assert torch.equal(model(*IMAGE), wanted)


def test_the_module_stays_as_it_was() -> None:
    model = network().train()
    before = copy.deepcopy(model.state_dict())
    compile_module(model, IMAGE, calibration=[IMAGE])
    assert all(module.training for module in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("channels_last", [False, True])
def test_partial_delegation(channels_last: bool) -> None:
    torch.manual_seed(0)
    options: dict[str, Any] = {"operators_not_to_delegate": ("aten.add.Tensor", "aten.mul.Tensor")}
    built = build(Islands(), IMAGE, calibration=[IMAGE], channels_last=channels_last, **options)
    x = IMAGE[0].to(memory_format=torch.channels_last if channels_last else torch.contiguous_format)
    (got,) = load_program(built.pte).run(x)
    assert built.quantized is not None
    assert (got - built.quantized(x)).abs().max() < 0.03
    assert len(built.partitions) == 2
    assert bool(built.report.passes["make_islands_contiguous"]) == channels_last
    assert any("contiguous order" in note for note in built.report.notes) == channels_last


@pytest.mark.parametrize("target", ["imxrt700", "mcxn94x", "imx95"])
def test_targets_agree(target: str) -> None:
    program = compile_module(network(), IMAGE, calibration=[IMAGE], target=target)
    (got,) = program.run(*IMAGE)
    (wanted,) = compile_module(network(), IMAGE, calibration=[IMAGE]).run(*IMAGE)
    assert torch.equal(got, wanted) and program.report.target == target


def test_exported_quantized_program() -> None:
    program = pipeline.quantize(network(), IMAGE, [IMAGE]).program
    nodes = len(program.graph.nodes)
    (got,) = compile_module(program, None).run(*IMAGE)
    (wanted,) = compile_module(network(), IMAGE, calibration=[IMAGE]).run(*IMAGE)
    assert torch.equal(got, wanted) and len(program.graph.nodes) == nodes


def test_trained_with_fake_quantization() -> None:
    from torchao.quantization.pt2e import move_exported_model_to_eval
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e

    from openneutron.executorch import NeutronQuantizer

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(), nn.Flatten(), nn.Linear(144, 3)
    )
    prepared = prepare_qat_pt2e(torch.export.export(model, IMAGE).module(), NeutronQuantizer(is_qat=True))
    optimizer = torch.optim.SGD(prepared.parameters(), 0.01)
    for _ in range(3):
        optimizer.zero_grad()
        prepared(*IMAGE).square().sum().backward()
        optimizer.step()
    move_exported_model_to_eval(prepared)
    quantized = convert_pt2e(prepared)
    built = build(torch.export.export(quantized, IMAGE))
    assert not [v for v in built.report.nodes if not v.delegated and v.code != "border"]
    (got,) = load_program(built.pte).run(*IMAGE)
    assert (got - quantized(*IMAGE)).abs().max() < 0.05


def _dynamic() -> Any:
    batch = torch.export.Dim("batch", min=1, max=8)
    inputs = (torch.randn(2, 3, 8, 8),)
    return torch.export.export(nn.ReLU(), inputs, dynamic_shapes=({0: batch},))


class Branching(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x


BAD: dict[str, tuple[Any, type[OpenNeutronError], str]] = {
    "unquantized program": (
        lambda: build(torch.export.export(nn.ReLU(), IMAGE)),
        UnsupportedError,
        "the program is not quantized",
    ),
    "dynamic shape": (lambda: build(_dynamic()), UnsupportedError, "dynamic shape"),
    "control flow": (
        lambda: build(Branching(), IMAGE, calibration=[IMAGE]),
        UnsupportedError,
        r"the model decides by the value of a tensor \(test_pipeline.py:\d+\).*torch.where",
    ),
    "nothing to quantize": (
        lambda: build(_Sine(), IMAGE, calibration=[IMAGE]),
        UnsupportedError,
        "no operator of the model can be quantized",
    ),
    "no calibration": (lambda: build(network(), IMAGE), OptionError, "calibration"),
    "unknown target": (lambda: build(network(), IMAGE, calibration=[IMAGE], target="npu9"), OptionError, "npu9"),
    "unknown pass": (
        lambda: build(network(), IMAGE, calibration=[IMAGE], passes_off=("fuse_everything",)),
        OptionError,
        "unknown pass",
    ),
}


class _Sine(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ordered(x)


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(name: str) -> None:
    attempt, kind, part = BAD[name]
    with pytest.raises(kind, match=part) as caught:
        attempt()
    assert caught.value.hint and "\n" not in str(caught.value)


def test_another_executorch_minor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "version", lambda name: "1.6.0")
    monkeypatch.setattr(switch, "version", lambda name: "1.6.0")
    with pytest.raises(OpenNeutronError, match=r"executorch 1\.6\.0 is installed"):
        build(network(), IMAGE, calibration=[IMAGE])
