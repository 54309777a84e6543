"""Recipes for i.MX RT700 as a whole: Neutron first, Cortex-M operators for what is left, portable kernels for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from executorch.exir import EdgeProgramManager
from executorch.export import BackendRecipeProvider, ExportRecipe, LoweringRecipe, RecipeType

from openneutron.board.cpu import CORTEX_M
from openneutron.executorch.compile_spec import to_specs
from openneutron.executorch.cortex_m.absorb_transposes import absorb_transposes
from openneutron.executorch.cortex_m.backend_parts import cortex_m_backend
from openneutron.executorch.cortex_m.claim import Claim, claim_leftovers
from openneutron.executorch.cortex_m.leftovers import LeftoverQuantizer
from openneutron.executorch.cortex_m.passes import edge_compile_config, replace_program, run_cortex_m_passes
from openneutron.executorch.partition.partitioner import NeutronPartitioner
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.recipes.neutron import is_per_channel, is_training
from openneutron.executorch.recipes.quantization import quantization_recipe
from openneutron.executorch.recipes.recipe_options import Imxrt700cmRecipeOptions, read_options
from openneutron.executorch.recipes.types import Imxrt700cmRecipeType

CPU: Final = "cortex-m33"  # the core beside the NPU (i.MX RT700 data sheet)


class Imxrt700cmRecipeProvider(BackendRecipeProvider):
    """Makes `Imxrt700cmRecipeType` recipes; options are `Imxrt700cmRecipeOptions`' fields."""

    @property
    def backend_name(self) -> str:
        """The name under which it is registered."""
        return Imxrt700cmRecipeType.get_backend_name()

    def get_supported_recipes(self) -> Sequence[RecipeType]:
        """All of them."""
        return list(Imxrt700cmRecipeType)

    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        """The recipe; None for a type of another backend.

        Example:
            >>> Imxrt700cmRecipeProvider().create_recipe(Imxrt700cmRecipeType.INT8_PTQ_PER_CHANNEL)
        """
        if recipe_type not in self.get_supported_recipes():
            return None
        import executorch.kernels.quantized  # noqa: F401  without it to_executorch knows no quantize.out

        where = f"recipe {recipe_type.value}"
        options = read_options(Imxrt700cmRecipeOptions, kwargs, recipe=recipe_type.value)
        is_qat = is_training(recipe_type)
        options.check(is_qat=is_qat, where=where)
        cortex_m_backend(where=where)
        neutron = NeutronQuantizer(
            is_qat=is_qat,
            per_channel=is_per_channel(recipe_type),
            observer=options.observer,
            exclude=options.exclude,
            activations=options.activations,
            precision=options.precision,
        )
        partitioner = NeutronPartitioner(to_specs(options.neutron()), placement=options.placement, cpu_costs=CORTEX_M)
        return ExportRecipe(
            name=recipe_type.value,
            quantization_recipe=quantization_recipe(
                [neutron, LeftoverQuantizer(neutron.excludes, is_qat=is_qat)], options, is_qat=is_qat
            ),
            lowering_recipe=LoweringRecipe(
                partitioners=[partitioner],
                edge_compile_config=edge_compile_config(preserve=False),
                edge_manager_transform_passes=[PlaceLeftovers()],
            ),
        )


class PlaceLeftovers:
    """What happens behind the partitioner: claim, Cortex-M's passes, then borders without transposes.

    `claims` keeps who runs what and why.
    """

    def __init__(self) -> None:
        self.claims: dict[str, Claim] = {}

    def __call__(self, manager: EdgeProgramManager) -> list[Any]:
        """Rewrite every method in place; there are no passes left to run."""
        for method in manager.methods:
            program = manager.exported_program(method)
            # The partitioner has made what is left contiguous, which is what explicit NHWC starts from.
            self.claims.update(claim_leftovers(program))
            program = run_cortex_m_passes(program, CPU)
            absorb_transposes(program)
            replace_program(manager, method, program)
        return []
