"""Recipes under the names of ExecuTorch's own NXP backend."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from executorch.export import ExportRecipe, export, recipe_registry

from openneutron.errors import OptionError
from openneutron.executorch import CustomDelegationOptions, NeutronQuantizer
from openneutron.executorch.recipes import NeutronRecipeConfig, NXPRecipeProvider, NXPRecipeType, run_recipe
from openneutron.executorch.recipes.upstream_names import shapes_of
from openneutron.executorch.run.runtime import load_program
from tests.executorch.recipes.networks import NormedLinear, images, settled

SHAPE = tuple(images(1)[0][0].shape)


def _recipe(kind: NXPRecipeType, **fields: Any) -> ExportRecipe:
    config = NeutronRecipeConfig(input_spec=SHAPE, **fields)
    return ExportRecipe.get_recipe(kind, neutron_recipe_config=config)


def _delegates(session: Any) -> int:
    plan = session.get_executorch_program_manager().executorch_program.execution_plan[0]
    return len(plan.delegates)


def test_the_backend_is_registered_with_all_types() -> None:
    assert list(recipe_registry.get_supported_recipes("nxp")) == list(NXPRecipeType)


@pytest.mark.parametrize(
    ("kind", "delegates"), [(NXPRecipeType.INT8_PTQ_NEUTRON, 1), (NXPRecipeType.INT8_PTQ_NO_DELEGATE, 0)]
)
def test_types_say_whether_the_npu_runs_it(kind: NXPRecipeType, delegates: int) -> None:
    model = settled(NormedLinear())
    recipe = _recipe(kind)
    session = export(model, images(3), recipe)
    assert recipe.name == kind.value and _delegates(session) == delegates
    (x,) = images(1, seed=9)[0]
    (got,) = load_program(bytes(session.get_pte_buffer())).run(x)
    wanted = model(x)
    assert torch.allclose(got, wanted, atol=0.1 * float(wanted.max() - wanted.min()))


def test_fields_that_are_objects_are_used() -> None:
    asked: list[str] = []

    def quantizer() -> NeutronQuantizer:
        asked.append("quantizer")
        return NeutronQuantizer()

    recipe = _recipe(
        NXPRecipeType.INT8_PTQ_NEUTRON, get_quantizer_fn=quantizer, remove_quant_io_ops=True,
        custom_delegation_options=CustomDelegationOptions(allow_no_op_partitions=True),
    )  # fmt: skip
    session = export(settled(NormedLinear()), images(3), recipe)
    plan = session.get_executorch_program_manager().executorch_program.execution_plan[0]
    types = {plan.values[index].val.scalar_type.name for index in (*plan.inputs, *plan.outputs)}
    assert asked == ["quantizer"] and types == {"CHAR"} and len(plan.delegates) == 1


def test_training_takes_upstreams_function_of_the_module_alone() -> None:
    seen: list[Any] = []

    def train(module: torch.nn.Module) -> None:
        seen.append(module)
        module(torch.rand(4, *SHAPE[1:]))

    recipe = _recipe(NXPRecipeType.INT8_QAT_NEUTRON, train_fn=train)
    session = run_recipe(settled(NormedLinear()), images(3), recipe)
    assert len(seen) == 1 and isinstance(seen[0], torch.nn.Module) and _delegates(session) == 1


@pytest.mark.parametrize(
    ("kind", "given", "sentence"),
    [
        (NXPRecipeType.INT8_PTQ_NEUTRON, {}, "neutron_recipe_config is missing"),
        (NXPRecipeType.INT8_PTQ_NEUTRON, {"neutron_recipe_config": 3}, "neutron_recipe_config is a int"),
        (NXPRecipeType.INT8_QAT_NEUTRON, {"neutron_recipe_config": NeutronRecipeConfig(SHAPE)}, "train_fn is missing"),
        (NXPRecipeType.INT8_PTQ_NEUTRON, {"neutron_recipe_config": NeutronRecipeConfig("x")}, "input_spec is 'x'"),
        (
            NXPRecipeType.INT8_PTQ_NEUTRON,
            {"neutron_recipe_config": NeutronRecipeConfig(SHAPE, target="imxrt800")},
            "unknown target 'imxrt800'",
        ),
        (
            NXPRecipeType.INT8_PTQ_NEUTRON,
            {"neutron_recipe_config": NeutronRecipeConfig(SHAPE), "target": "imxrt700"},
            "unknown option 'target'",
        ),
    ],
)
def test_what_is_wrong_is_named(kind: NXPRecipeType, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        NXPRecipeProvider().create_recipe(kind, **given)


def test_shapes_come_in_all_forms_of_upstream() -> None:
    assert shapes_of((1, 2), "w") == [(1, 2)]
    assert shapes_of([(1, 2), (3,)], "w") == [(1, 2), (3,)]
    assert shapes_of([SimpleNamespace(shape=(4, 5))], "w") == [(4, 5)]
