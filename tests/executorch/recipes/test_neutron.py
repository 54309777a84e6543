"""Recipes for the NPU alone, through ExecuTorch's own `export`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from executorch.export import ExportRecipe, export

import openneutron
from openneutron.errors import OptionError
from openneutron.executorch.recipes import CortexMRecipeType, Imxrt700cmRecipeType, NeutronRecipeType
from openneutron.executorch.run.runtime import load_program
from tests.executorch.recipes.networks import NormedLinear, images, settled


@pytest.mark.parametrize("kind", [NeutronRecipeType.INT8_PTQ_PER_TENSOR, NeutronRecipeType.INT8_PTQ_PER_CHANNEL])
def test_export_with_the_recipe_runs_and_equals_the_quantized_module(kind: NeutronRecipeType) -> None:
    model = settled(NormedLinear())
    recipe = ExportRecipe.get_recipe(kind, calibration=images(3))
    session = export(model, images(1), recipe)
    quantized = next(a.data["forward"] for t, a in session.get_stage_artifacts().items() if t == "quantize")
    (x,) = images(1, seed=9)[0]
    (got,) = load_program(bytes(session.get_pte_buffer())).run(x)
    wanted = quantized(x)
    steps = (wanted.max() - wanted.min()) / 200
    assert torch.allclose(got, wanted, atol=float(steps) * 3)
    ours = openneutron.compile(
        model,
        images(1)[0],
        calibration=images(3),
        per_channel=kind is NeutronRecipeType.INT8_PTQ_PER_CHANNEL,
        quality="plain",
    )
    assert torch.equal(got, ours.run(x)[0])


def test_the_registry_finds_all_types() -> None:
    from executorch.export import recipe_registry

    for types in (NeutronRecipeType, CortexMRecipeType, Imxrt700cmRecipeType):
        assert list(recipe_registry.get_supported_recipes(types.get_backend_name())) == list(types)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"traget": "imxrt700"}, r"unknown option 'traget'; it has .*target.*did you mean 'target'"),
        ({"target": "nonsense"}, "nonsense"),
        ({"observer": "magic"}, "observer is 'magic'.*histogram"),
        ({"exclude": "conv*"}, "exclude is the string"),
        ({"placement": "best"}, "placement is 'best'.*fastest"),
        ({"optimize": "hard"}, "optimize is 'hard'"),
        ({"train": print}, "train is given, but the recipe quantizes after training"),
        ({"calibration": torch.zeros(1)}, "calibration is a Tensor"),
        ({"schedule": 3}, "schedule is 3"),
        ({"progress": 3}, "progress is 3"),
        ({"use_profiling": "yes"}, "use_profiling is 'yes'"),
        ({"fit_bytes": "much"}, "fit_bytes is 'much'"),
        ({"operators_not_to_delegate": [3]}, "operators_not_to_delegate contains 3"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_options_are_refused_by_name(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        ExportRecipe.get_recipe(NeutronRecipeType.INT8_PTQ_PER_TENSOR, **options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "train is missing"),
        ({"train": 3}, "train is a int"),
        ({"train": print, "calibration": []}, "both given"),
        ({"train": print, "observer": "minmax"}, "moving averages"),
    ],
    ids=["missing", "number", "both", "observer"],
)
def test_a_training_recipe_needs_a_train_function_and_nothing_else(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        ExportRecipe.get_recipe(NeutronRecipeType.INT8_QAT_PER_TENSOR, **options)


def test_bad_calibration_and_a_model_in_training_are_refused() -> None:
    recipe = ExportRecipe.get_recipe(NeutronRecipeType.INT8_PTQ_PER_TENSOR, calibration=[])
    with pytest.raises(OptionError, match="calibration is empty"):
        export(settled(NormedLinear()), images(1), recipe)
    for sample in (*images(1, 1, 3, 8, 8), (), ("an image",)):
        recipe = ExportRecipe.get_recipe(NeutronRecipeType.INT8_PTQ_PER_TENSOR, calibration=[*images(1), sample])
        with pytest.raises(OptionError, match=r"sample 1 is .*the model takes float32 \[1, 3, 16, 16\]"):
            export(settled(NormedLinear()), images(1), recipe)
    recipe = ExportRecipe.get_recipe(NeutronRecipeType.INT8_PTQ_PER_TENSOR, calibration=images(2, 4, 3, 16, 16))
    with pytest.raises(RuntimeError, match=r"is in training mode.*call model.eval\(\)"):
        export(NormedLinear().train(), images(1, 4, 3, 16, 16), recipe)
