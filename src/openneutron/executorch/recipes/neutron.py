"""Recipes for the NPU alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from executorch.export import BackendRecipeProvider, ExportRecipe, LoweringRecipe, RecipeType

from openneutron.executorch.compile_spec import to_specs
from openneutron.executorch.partition.partitioner import NeutronPartitioner
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.recipes.quantization import quantization_recipe
from openneutron.executorch.recipes.recipe_options import NeutronRecipeOptions, read_options
from openneutron.executorch.recipes.types import NeutronRecipeType


class NeutronRecipeProvider(BackendRecipeProvider):
    """Makes `NeutronRecipeType` recipes; options are `NeutronRecipeOptions`' fields."""

    @property
    def backend_name(self) -> str:
        """The name under which it is registered."""
        return NeutronRecipeType.get_backend_name()

    def get_supported_recipes(self) -> Sequence[RecipeType]:
        """All of them."""
        return list(NeutronRecipeType)

    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        """The recipe; None for a type of another backend.

        Example:
            >>> NeutronRecipeProvider().create_recipe(NeutronRecipeType.INT8_PTQ_PER_TENSOR, target="mcxn94x")
        """
        if recipe_type not in self.get_supported_recipes():
            return None
        import executorch.kernels.quantized  # noqa: F401  without it to_executorch knows no quantize.out

        options = read_options(NeutronRecipeOptions, kwargs, recipe=recipe_type.value)
        is_qat, per_channel = is_training(recipe_type), is_per_channel(recipe_type)
        options.check(is_qat=is_qat, where=f"recipe {recipe_type.value}")
        partitioner = NeutronPartitioner(to_specs(options.neutron()), placement=options.placement)
        quantizer = NeutronQuantizer(
            is_qat=is_qat,
            per_channel=per_channel,
            observer=options.observer,
            exclude=options.exclude,
            activations=options.activations,
            precision=options.precision,
        )
        return ExportRecipe(
            name=recipe_type.value,
            quantization_recipe=quantization_recipe([quantizer], options, is_qat=is_qat),
            lowering_recipe=LoweringRecipe(partitioners=[partitioner]),
        )


def is_training(recipe: RecipeType) -> bool:
    """Whether the recipe trains with rounding in the loop."""
    return "QAT" in recipe.name


def is_per_channel(recipe: RecipeType) -> bool:
    """Whether each output channel of a convolution has its own weight scale."""
    return "PER_CHANNEL" in recipe.name
