"""The kernel-registration stage writes the selection through the recipe, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from executorch.export import ExportRecipe

import openneutron
from openneutron.errors import OpenNeutronError, OptionError
from openneutron.executorch.recipes import KernelSelectionStage, NeutronRecipeType, run_recipe
from tests.executorch.recipes.networks import ThreeEngines, images, settled

KIND = NeutronRecipeType.INT8_PTQ_PER_TENSOR


def test_the_stage_writes_what_compile_returns(tmp_path: Path) -> None:
    model = settled(ThreeEngines())
    recipe = ExportRecipe.get_recipe(KIND, calibration=images(2), dump_kernel_selection_code=True)
    stage = KernelSelectionStage(tmp_path / "model_kernel_selection.c")
    session = run_recipe(model, images(1), recipe, [stage])
    program = openneutron.compile(model, images(1)[0], calibration=images(2), dump_kernel_selection_code=True)
    assert (tmp_path / "model_kernel_selection.c").read_text() == program.kernel_selection == stage.selection
    assert session.get_pte_buffer()


def test_a_recipe_that_selects_nothing_is_refused_and_nothing_written(tmp_path: Path) -> None:
    recipe = ExportRecipe.get_recipe(KIND, calibration=images(2))
    with pytest.raises(OptionError, match="dump_kernel_selection_code=True"):
        run_recipe(settled(ThreeEngines()), images(1), recipe, [KernelSelectionStage(tmp_path / "s.c")])
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_c_source_is_refused_beforehand(tmp_path: Path) -> None:
    with pytest.raises(OpenNeutronError, match=r"\.c"):
        KernelSelectionStage(tmp_path / "selection.txt")
