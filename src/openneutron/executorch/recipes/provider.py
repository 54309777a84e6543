"""Export recipes for ExecuTorch's `export()`: the engines of a recipe's name, with the options of its call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from executorch.export import BackendRecipeProvider, ExportRecipe, LoweringRecipe, RecipeType

from openneutron.executorch.engines import engines_of
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.recipes.quantization import equalize_model, quantization_recipe
from openneutron.executorch.recipes.recipe_options import NeutronRecipeOptions, options_of


class EngineRecipeProvider(BackendRecipeProvider):
    """Makes the recipes of one enumeration; its backend's name is the name of the engines.

    Example:
        >>> provider = EngineRecipeProvider(NeutronRecipeType)
        >>> provider.create_recipe(NeutronRecipeType.INT8_PTQ_PER_TENSOR, target="mcxn94x")
    """

    def __init__(self, types: type[RecipeType]) -> None:
        self._types = types

    @property
    def backend_name(self) -> str:
        """The name under which it is registered."""
        return self._types.get_backend_name()

    def get_supported_recipes(self) -> Sequence[RecipeType]:
        """All of the enumeration."""
        return [*self._types.__members__.values()]

    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        """The recipe; None for a type of another backend."""
        if recipe_type not in self.get_supported_recipes():
            return None
        import executorch.kernels.quantized  # noqa: F401  without it to_executorch knows no quantize.out

        engines, is_qat = engines_of(self.backend_name), _is_training(recipe_type)
        if engines.neutron:
            kwargs.setdefault("per_channel", _is_per_channel(recipe_type))
        options = options_of(engines, kwargs, recipe=recipe_type.value)
        options.check(is_qat=is_qat, where=f"recipe {recipe_type.value}")
        chosen = Choices()
        if isinstance(options, NeutronRecipeOptions):
            engines.check_target(options.target)
            chosen = options.choices(is_qat=is_qat)
            partitioner = engines.partitioner(options.neutron(), options.placement)
            step = engines.leftover_step()
        else:
            partitioner, step = None, engines.leftover_step(options.cpu)
        return ExportRecipe(
            name=recipe_type.value,
            quantization_recipe=quantization_recipe(
                engines.quantizers(chosen, is_qat=is_qat),
                options,
                is_qat=is_qat,
                before=[partial(equalize_model, options.calibration, chosen.per_channel)] if chosen.equalize else [],
            ),
            lowering_recipe=LoweringRecipe(
                partitioners=None if partitioner is None else [partitioner],
                edge_compile_config=engines.compile_config(),
                edge_manager_transform_passes=None if step is None else [step],
            ),
        )


def _is_training(recipe: RecipeType) -> bool:
    return "QAT" in recipe.name


def _is_per_channel(recipe: RecipeType) -> bool:
    return "PER_CHANNEL" in recipe.name
