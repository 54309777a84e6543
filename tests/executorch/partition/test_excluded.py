"""Patterns of what the user keeps on the CPU, and those that match nothing."""

import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.executorch.partition.excluded import Excluded


def compiled(**options: object) -> on.Program:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4)).eval()
    data = torch.rand(4, 3, 8, 8)
    return on.compile(model, (data[:1],), calibration=[data], **options)


def test_spellings_name_one_operator() -> None:
    for spelling in ("aten.add.Tensor", "aten::add.Tensor", "aten.add", "aten_add_tensor", "aten_add"):
        assert Excluded([spelling]).names("aten.add.Tensor") == spelling
    assert Excluded(["aten_add"]).names("aten.addmm.default") == ""


def test_patterns_that_match_nothing_are_warned_of() -> None:
    warnings = compiled(
        operators_not_to_delegate=["aten_convoluton_default"], exclude=["Conv2d", "Lineer"]
    ).report.warnings
    assert "operators_not_to_delegate: 'aten_convoluton_default' matches no node, so it has no effect" in warnings
    assert "exclude: 'Lineer' matches no node, so it has no effect" in warnings
    assert not any("Conv2d" in one for one in warnings)


def test_patterns_of_precision_and_of_layers_that_match_nothing_are_warned_of() -> None:
    named = ("haed", "aten.softmax.int")  # the second is an operator that other networks have
    layers = [{"name": "3", "activations": "int16"}, *({"name": one, "per_channel": False} for one in named)]
    warnings = compiled(
        precision={"Conv2d": "int16", "relu?": "int8"}, quantization={"layer": layers}, quality="plain"
    ).report.warnings
    assert [one for one in warnings if "matches no node" in one] == [
        "precision: 'relu?' matches no node, so it has no effect",
        "[[layer]]: 'haed' matches no node, so it has no effect",
    ]


def test_choices_that_a_compile_makes_by_itself_are_no_warnings() -> None:
    program = on.compile(nn.Conv2d(3, 4, 3).eval(), (torch.rand(1, 3, 8, 8),), calibration=[torch.rand(4, 3, 8, 8)])
    assert not any("matches no node" in one for one in program.report.warnings)


@pytest.mark.parametrize(
    "given", ["aten_convolution_default, aten_addmm_default", ["aten_convolution_default,aten_addmm_default"]]
)
def test_names_in_one_text_are_separated_by_commas(given: object) -> None:
    program = compiled(operators_not_to_delegate=given)
    assert not any(one.delegated for one in program.verdicts if "conv" in one.operator or "addmm" in one.operator)
    assert not any("matches no node" in one for one in program.report.warnings)
