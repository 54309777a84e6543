"""Recipes: one name per chip. Importing this package registers them with ExecuTorch.

`neutron` runs what it can on the NPU and the rest in portable kernels; `cortex_m` runs on the CPU's own INT8 operators;
`imxrt700cm` is the chip with both: Neutron first, Cortex-M operators for what is left, portable kernels for the rest.
`nxp` has the names of ExecuTorch's own NXP backend.

Example:
    >>> from executorch.export import ExportRecipe, export
    >>> from openneutron.executorch.recipes import NeutronRecipeType
    >>> recipe = ExportRecipe.get_recipe(NeutronRecipeType.INT8_PTQ_PER_CHANNEL, target="imxrt700")
    >>> export(model, [(image,) for image in images], recipe).save_to_pte("model")
"""

from __future__ import annotations

from executorch.export import recipe_registry

from openneutron.executorch.quantize.train.training import Schedule, Training
from openneutron.executorch.recipes.provider import EngineRecipeProvider
from openneutron.executorch.recipes.session import run_recipe
from openneutron.executorch.recipes.stage_kernel_selection import KernelSelectionStage
from openneutron.executorch.recipes.stage_qat import QatStage
from openneutron.executorch.recipes.types import CortexMRecipeType, Imxrt700cmRecipeType, NeutronRecipeType
from openneutron.executorch.recipes.upstream_names import NeutronRecipeConfig, NXPRecipeProvider, NXPRecipeType

__all__ = [
    "CortexMRecipeType",
    "Imxrt700cmRecipeType",
    "KernelSelectionStage",
    "NXPRecipeProvider",
    "NXPRecipeType",
    "NeutronRecipeConfig",
    "NeutronRecipeType",
    "QatStage",
    "Schedule",
    "Training",
    "run_recipe",
]

for _types in (NeutronRecipeType, CortexMRecipeType, Imxrt700cmRecipeType):
    recipe_registry.register_backend_recipe_provider(EngineRecipeProvider(_types))
recipe_registry.register_backend_recipe_provider(NXPRecipeProvider())
