"""Recipes under the names of ExecuTorch's own NXP backend: backend `nxp`, its recipe types, its configuration.

Scripts for upstream work after changing the import. Weights have one scale per tensor, as there.

Example:
    >>> config = NeutronRecipeConfig(input_spec=(1, 3, 32, 32), target="imxrt700")
    >>> recipe = ExportRecipe.get_recipe(NXPRecipeType.INT8_PTQ_NEUTRON, neutron_recipe_config=config)
    >>> export(model, [(image,) for image in images], recipe).save_to_pte("model")
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from executorch.exir import EdgeProgramManager
from executorch.export import BackendRecipeProvider, ExportRecipe, RecipeType
from torchao.quantization.pt2e.quantizer import Quantizer

from openneutron.errors import OptionError
from openneutron.executorch.compile_spec import to_specs
from openneutron.executorch.partition.delegation import CustomDelegationOptions
from openneutron.executorch.partition.partitioner import NeutronPartitioner
from openneutron.executorch.partition.passes.remove_border_quantize import remove_border_quantize
from openneutron.executorch.recipes.provider import EngineRecipeProvider
from openneutron.executorch.recipes.recipe_options import NeutronRecipeOptions
from openneutron.executorch.recipes.types import NeutronRecipeType
from openneutron.options import DEFAULT_TARGET

NXP_BACKEND: Final = "nxp"
CONFIG_KEY: Final = "neutron_recipe_config"
# Fields of the configuration that are options of ours under the same name.
_SAME: Final = (
    "target", "use_neutron_for_format_conversion", "fetch_constants_to_sram", "dump_kernel_selection_code", "use_profiling",
)  # fmt: skip


class NXPRecipeType(RecipeType):
    """INT8 after training or by training, on the NPU or with every operator on the CPU."""

    INT8_PTQ_NEUTRON = "nxp_int8_ptq_neutron"
    INT8_QAT_NEUTRON = "nxp_int8_qat_neutron"
    INT8_PTQ_NO_DELEGATE = "nxp_int8_ptq_no_delegate"
    INT8_QAT_NO_DELEGATE = "nxp_int8_qat_no_delegate"

    @classmethod
    def get_backend_name(cls) -> str:
        """The name under which the provider is registered."""
        return NXP_BACKEND


@dataclass
class NeutronRecipeConfig:
    """The configuration of these recipes, with upstream's fields.

    `input_spec` is a shape, a list of shapes, or objects with a `shape`; example inputs of the export must have them.
    `train_fn` trains the prepared module for the QAT types. `use_quant_state_dict` has no effect: the partitioner finds the
    real weights in either case.
    """

    input_spec: Iterable[Any] | tuple[int, ...] | list[tuple[int, ...]]
    target: str = DEFAULT_TARGET
    operators_not_to_delegate: list[str] | None = None
    intermediates_dir: str | None = None
    get_quantizer_fn: Callable[[], Quantizer] | None = None
    custom_delegation_options: CustomDelegationOptions | None = None
    remove_quant_io_ops: bool = False
    use_quant_state_dict: bool = True
    use_neutron_for_format_conversion: bool = True
    fetch_constants_to_sram: bool = False
    dump_kernel_selection_code: bool = False
    use_profiling: bool = False
    train_fn: Callable[[torch.fx.GraphModule], None] | None = None


class NXPRecipeProvider(BackendRecipeProvider):
    """Makes recipes from upstream's types and configuration."""

    @property
    def backend_name(self) -> str:
        """The name under which it is registered."""
        return NXP_BACKEND

    def get_supported_recipes(self) -> Sequence[RecipeType]:
        """All of `NXPRecipeType`."""
        return list(NXPRecipeType)

    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        """Return the recipe of this type; None if the type belongs to another backend."""
        if not isinstance(recipe_type, NXPRecipeType):
            return None
        config, where = kwargs.pop(CONFIG_KEY, None), f"recipe {recipe_type.value}"
        if not isinstance(config, NeutronRecipeConfig):
            found = "is missing" if config is None else f"is a {type(config).__name__}"
            raise OptionError(f"{CONFIG_KEY} {found}", where=where, hint="give a NeutronRecipeConfig(input_spec=...)")
        if kwargs:
            raise OptionError(
                f"unknown option {next(iter(kwargs))!r}",
                where=where,
                hint=f"it has {CONFIG_KEY} alone, with all fields",
            )
        shapes_of(config.input_spec, where)
        is_qat = "QAT" in recipe_type.name
        options = _options(config, delegated=not recipe_type.name.endswith("NO_DELEGATE"), is_qat=is_qat, where=where)
        ours = NeutronRecipeType.INT8_QAT_PER_TENSOR if is_qat else NeutronRecipeType.INT8_PTQ_PER_TENSOR
        made = EngineRecipeProvider(NeutronRecipeType).create_recipe(ours, **options)
        assert made is not None
        return _adapt_recipe(made, config, options, recipe_type)


def shapes_of(spec: Any, where: str) -> list[tuple[int, ...]]:
    """Return the shapes that an `input_spec` describes.

    Example:
        >>> shapes_of((1, 3, 32, 32), "recipe")
        [(1, 3, 32, 32)]
    """
    parts = list(spec) if isinstance(spec, Iterable) else []
    if parts and all(isinstance(size, int) for size in parts):
        parts = [tuple(parts)]
    shapes = [tuple(getattr(part, "shape", part) if part is not None else ()) for part in parts if _is_shape(part)]
    if not shapes or len(shapes) != len(parts):
        raise OptionError(
            f"input_spec is {spec!r}", where=where, hint="give a shape such as (1, 3, 32, 32), or a list of shapes"
        )
    return shapes


def _is_shape(part: Any) -> bool:
    sizes = getattr(part, "shape", part)
    return isinstance(sizes, Iterable) and not isinstance(sizes, str) and all(isinstance(one, int) for one in sizes)


def _options(config: NeutronRecipeConfig, *, delegated: bool, is_qat: bool, where: str) -> dict[str, Any]:
    """Return the options of our recipe for upstream's configuration."""
    made: dict[str, Any] = {name: getattr(config, name) for name in _SAME}
    made["operators_not_to_delegate"] = tuple(config.operators_not_to_delegate or ()) if delegated else ("*",)
    made["intermediates_dir"] = config.intermediates_dir or ""
    made["dump_intermediates"] = bool(config.intermediates_dir)
    if is_qat:
        train = config.train_fn
        if train is None:
            raise OptionError("train_fn is missing, and the recipe trains", where=where, hint="give a function")
        made["train"] = lambda module, training: train(module)
    return made


def _adapt_recipe(
    made: ExportRecipe, config: NeutronRecipeConfig, options: dict[str, Any], recipe_type: RecipeType
) -> ExportRecipe:
    """Return our recipe under upstream's name, with the parts of the configuration that are objects."""
    lowering, quantization = made.lowering_recipe, made.quantization_recipe
    assert lowering is not None and quantization is not None
    if config.get_quantizer_fn is not None:
        quantization = dataclasses.replace(quantization, quantizers=[config.get_quantizer_fn()])
    if config.custom_delegation_options is not None:
        spec = NeutronRecipeOptions(**options, per_channel=False).neutron()
        partitioner = NeutronPartitioner(to_specs(spec), None, config.custom_delegation_options)
        lowering = dataclasses.replace(lowering, partitioners=[partitioner])
    if config.remove_quant_io_ops:
        lowering = dataclasses.replace(lowering, edge_manager_transform_passes=[_remove_border_quantize])
    return dataclasses.replace(made, name=recipe_type.value, lowering_recipe=lowering, quantization_recipe=quantization)


def _remove_border_quantize(manager: EdgeProgramManager) -> list[Any]:
    for method in manager.methods:
        remove_border_quantize(manager.exported_program(method))
    return []
