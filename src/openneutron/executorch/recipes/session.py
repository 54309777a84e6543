"""Run a recipe with stages of our own; ExecuTorch's `export()` starts before a stage could be registered."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import torch
from executorch.export import ExportRecipe, ExportSession, StageType
from executorch.export.stages import Stage

from openneutron.executorch.quantize.train.aware import Passes
from openneutron.executorch.recipes.stage_qat import QatStage
from openneutron.executorch.upstream.edge_names import pipeline_of, replace_pipeline


def run_recipe(
    model: torch.nn.Module,
    example_inputs: Sequence[tuple[Any, ...]],
    recipe: ExportRecipe,
    stages: Sequence[Stage] = (),
    *,
    instead: Mapping[Hashable, Stage] | None = None,
    name: str | None = None,
) -> ExportSession:
    """Export `model` by `recipe`; `stages` run after the recipe's own, `instead` replaces stages by their type.

    Every recipe that trains gets a `QatStage` with its quantizers and its train function: ExecuTorch's own stage needs
    example inputs of several images and leaves the caller's model in training mode.

    Example:
        >>> session = run_recipe(
        ...     model, [(image,)], recipe, [KernelSelectionStage("selection.c")],
        ...     instead={StageType.QUANTIZE: QatStage([NeutronQuantizer(is_qat=True)], train)},
        ... )
        >>> session.save_to_pte("model")
    """
    session = ExportSession(model, list(example_inputs), recipe, name=name)
    for kind, stage in {**_training_stage(recipe), **(instead or {})}.items():
        session.register_stage(kind, stage)  # type: ignore[arg-type]
    pipeline: list[Any] = pipeline_of(session)
    for stage in stages:
        pipeline.append(stage.stage_type)
        session.register_stage(stage.stage_type, stage)
    replace_pipeline(session, pipeline)
    session.export()
    return session


def _training_stage(recipe: ExportRecipe) -> dict[Hashable, Stage]:
    quantization = recipe.quantization_recipe
    if quantization is None or not quantization.is_qat or not quantization.quantizers or quantization.train_fn is None:
        return {}
    passes = Passes(
        quantization.pre_prepare_passes or (),
        quantization.post_prepare_passes or (),
        quantization.pre_convert_passes or (),
        quantization.post_convert_passes or (),
    )
    return {StageType.QUANTIZE: QatStage(quantization.quantizers, quantization.train_fn, passes=passes)}


def lowered_manager(session: ExportSession) -> Any:
    """The program as it was written, after every Edge pass.

    `ExportSession.get_edge_program_manager` hands back the one before EDGE_PROGRAM_MANAGER_TRANSFORM.
    """
    artifacts = session.get_stage_artifacts()
    for kind in (StageType.EDGE_PROGRAM_MANAGER_TRANSFORM, StageType.TO_EDGE_TRANSFORM_AND_LOWER):
        if kind in artifacts:
            return artifacts[kind].data
    return session.get_edge_program_manager()
