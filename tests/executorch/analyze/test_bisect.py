from __future__ import annotations

import shlex

import pytest
import torch
import typer

from openneutron.cli.app import build
from openneutron.cli.compile import FLAGGED, given_options
from openneutron.executorch.analyze.bisect import Bisection, bisect
from openneutron.executorch.quantize.choices import Choices
from openneutron.options import check_options


class Lopsided(torch.nn.Module):
    """One weight of its second convolution is huge, on an input that is always 0: per tensor it ruins all the others."""

    def __init__(self) -> None:
        super().__init__()
        self.good = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.bad = torch.nn.Conv2d(8, 8, 3, padding=1)
        self.last = torch.nn.Linear(8, 4)
        with torch.no_grad():
            self.good.weight[0], self.good.bias[0] = 0, -1
            self.bad.weight[0, 0] = 50

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.bad(torch.relu(self.good(x))))
        return self.last(x.mean(dim=(2, 3)))


@pytest.fixture(scope="module")
def found() -> Bisection:
    torch.manual_seed(1)
    inputs = [(torch.randn(1, 3, 8, 8),) for _ in range(8)]
    classes = [int(torch.randint(0, 4, ())) for _ in inputs]
    return bisect(Lopsided().eval(), inputs[0], calibration=inputs, samples=inputs, classes=classes, target="imxrt700")


def test_the_layer_that_costs_most_comes_first_with_its_source_line(found: Bisection) -> None:
    dearest = found.layers[0]
    assert dearest.operator == "aten.conv2d.default" and "bad" in dearest.modules
    assert "test_bisect.py:" in dearest.source
    assert dearest.gain > 5 and dearest.gain == pytest.approx(dearest.measure.sqnr - found.quantized.sqnr)
    assert [layer.gain for layer in found.layers] == sorted((layer.gain for layer in found.layers), reverse=True)


def test_every_layer_is_asked_about_once(found: Bisection) -> None:
    assert len({layer.name for layer in found.layers}) == len(found.layers)
    assert {"good", "bad", "last"} <= {path for layer in found.layers for path in layer.modules}


def test_fixes_are_measured_and_the_right_one_wins(found: Bisection) -> None:
    best = found.fixes[0]
    assert best.measure.sqnr > found.quantized.sqnr + 5
    assert [fix.measure.sqnr for fix in found.fixes] == sorted((f.measure.sqnr for f in found.fixes), reverse=True)
    assert any("exclude" in fix.how and "bad" in fix.how for fix in found.fixes)
    assert 0 <= found.quantized.accuracy <= 1 and found.floating.sqnr == 120


def test_16_bits_are_tried_for_the_dearest_layer_and_priced(found: Bisection) -> None:
    wide = [fix for fix in found.fixes if "int16" in fix.how]
    assert any("'bad': 'int16'" in fix.how and "--precision bad=int16" in fix.flags for fix in wide)
    assert found.price is not None and all(fix.price is not None for fix in wide)
    everywhere = next(fix for fix in wide if fix.how == "activations='int16'")
    assert everywhere.price is not None
    assert everywhere.price.cycles > found.price.cycles and everywhere.price.peak_bytes > found.price.peak_bytes


def test_every_fix_can_be_pasted_into_the_command_into_python_and_into_a_quantization_file(found: Bisection) -> None:
    command = typer.main.get_command(build("compile")).commands["compile"]  # type: ignore[attr-defined]
    for fix in found.fixes:
        arguments = eval(f"dict({fix.how})")
        context = command.make_context("compile", ["model.pt2", *shlex.split(fix.flags)])
        assert given_options(FLAGGED, context.params) == check_options(arguments)
        asked = Choices.of(check_options(arguments))
        assert Choices.of({"quantization": arguments}) == asked != Choices()
