"""Recipes for Cortex-M alone: ExecuTorch's own quantizer and passes, without the NPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from executorch.exir import EdgeProgramManager
from executorch.export import BackendRecipeProvider, ExportRecipe, LoweringRecipe, RecipeType

from openneutron.executorch.cortex_m.backend_parts import cortex_m_backend, target_config
from openneutron.executorch.cortex_m.passes import edge_compile_config, replace_program, run_cortex_m_passes
from openneutron.executorch.recipes.quantization import quantization_recipe
from openneutron.executorch.recipes.recipe_options import CortexMRecipeOptions, read_options
from openneutron.executorch.recipes.types import CortexMRecipeType


class CortexMRecipeProvider(BackendRecipeProvider):
    """Makes `CortexMRecipeType` recipes; options are `CortexMRecipeOptions`' fields."""

    @property
    def backend_name(self) -> str:
        """The name under which it is registered."""
        return CortexMRecipeType.get_backend_name()

    def get_supported_recipes(self) -> Sequence[RecipeType]:
        """All of them."""
        return list(CortexMRecipeType)

    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        """The recipe; None for a type of another backend.

        Example:
            >>> CortexMRecipeProvider().create_recipe(CortexMRecipeType.INT8_PTQ, cpu="cortex-m33")
        """
        if recipe_type not in self.get_supported_recipes():
            return None
        where = f"recipe {recipe_type.value}"
        options = read_options(CortexMRecipeOptions, kwargs, recipe=recipe_type.value)
        options.check_calibration(where)
        backend = cortex_m_backend(where=where)
        target_config(backend, options.cpu)
        return ExportRecipe(
            name=recipe_type.value,
            quantization_recipe=quantization_recipe(
                [backend.quantizer(use_explicit_layout=True)], options, is_qat=False
            ),
            lowering_recipe=LoweringRecipe(
                edge_compile_config=edge_compile_config(preserve=True),
                edge_manager_transform_passes=[CortexMPasses(options.cpu)],
            ),
        )


class CortexMPasses:
    """The passes as a step of ExecuTorch's EDGE_PROGRAM_MANAGER_TRANSFORM stage."""

    def __init__(self, cpu: str) -> None:
        self._cpu = cpu

    def __call__(self, manager: EdgeProgramManager) -> list[Any]:
        """Rewrite every method in place; there are no passes left to run."""
        for method in manager.methods:
            program = run_cortex_m_passes(manager.exported_program(method), self._cpu)
            replace_program(manager, method, program)
        return []
