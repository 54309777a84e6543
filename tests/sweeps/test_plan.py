from __future__ import annotations

from pathlib import Path

import pytest

from openneutron.errors import OpenNeutronError
from openneutron.machine import targets
from openneutron.sweeps.plan import QUANTIZING, Model, format_value, make_plan


def test_the_grid_is_every_combination_once(folder: Path) -> None:
    plan = make_plan(["convnet.tflite", "sandwich.tflite"], {"target": "imxrt700,mcxn94x", "fit": "none,64K,65536"})
    assert plan.axes == ("target", "fit_bytes")
    assert len(plan.variants) == 8
    assert plan.variants[1].options == (("target", "imxrt700"), ("fit_bytes", 65536))
    assert plan.variants[0].command == "openneutron compile convnet.tflite --target imxrt700"


def test_values_from_python_and_from_text_are_the_same() -> None:
    text = make_plan("cifarnet", {"per_channel": "no,yes", "pass-off": "none,fuse_pad+fuse_lut"})
    python = make_plan(Model("cifarnet"), {"per_channel": [False, True], "passes_off": [(), ("fuse_pad", "fuse_lut")]})
    assert text.variants == python.variants and len(text.variants) == 4


def test_all_targets() -> None:
    assert len(make_plan("cifarnet", {"target": "all"}).variants) == len(targets.chips())


def test_factories_have_arguments() -> None:
    plan = make_plan({"source": "nets:make", "arguments": {"width": [0.25, 0.5], "deep": True}}, {})
    assert [one.model.label for one in plan.variants] == [
        "nets:make(width=0.25, deep=True)",
        "nets:make(width=0.5, deep=True)",
    ]
    assert plan.variants[0].command == ""


def test_variants_that_differ_in_target_or_budget_share_their_quantized_program() -> None:
    plan = make_plan(
        "cifarnet", {"target": "all", "fit": "none,64K", "placement": "all,fastest", "per_channel": "no,yes"}
    )
    assert {tuple(one.quantizing.items()) for one in plan.variants} == {(), (("per_channel", False),)}
    assert {"per_channel", "observer", "recipe"} <= QUANTIZING and not QUANTIZING & {"target", "fit_bytes", "int8_io"}


@pytest.mark.parametrize(
    ("models", "axes", "message"),
    [
        ([], {}, "a sweep needs a model"),
        ("no_such_model", {}, "no_such_model"),
        ("cifarnet", {"target": "imxrt701"}, "imxrt701"),
        ("cifarnet", {"fitt": "64K"}, "unknown option 'fitt'.*fit_bytes"),
        ("cifarnet", {"fit": "sixty"}, "--fit is 'sixty'"),
        ("cifarnet", {"observer": "none"}, "observer is 'none'"),
        ("cifarnet", {"per_channel": "maybe"}, "per_channel is 'maybe'"),
        ("cifarnet", {"target": ""}, "target has no values"),
        ({"source": "cifarnet", "arguments": {"a": 1}}, {}, "arguments are for factories"),
        ({"source": "cifarnet", "width": 1}, {}, "width"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(models: object, axes: dict[str, object], message: str) -> None:
    with pytest.raises(OpenNeutronError, match=message):
        make_plan(models, axes)


def test_shown() -> None:
    assert [format_value(one) for one in (None, (), True, ("a", "b"), 3)] == ["none", "none", "yes", "a+b", "3"]
