"""The kernel-registration stage writes the selection through the recipe, whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.export import ExportRecipe, LoweringRecipe
from torch import nn
from torch.export import ExportedProgram

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


def test_a_training_that_fails_writes_nothing(tmp_path: Path) -> None:
    def train(model: Any) -> None:
        raise RuntimeError("out of coffee")

    recipe = ExportRecipe.get_recipe(
        NeutronRecipeType.INT8_QAT_PER_TENSOR, train=train, dump_kernel_selection_code=True
    )
    with pytest.raises(OpenNeutronError, match="qat: the train function failed: RuntimeError: out of coffee"):
        run_recipe(nn.Sequential(nn.Conv2d(3, 4, 3)), images(1), recipe, [KernelSelectionStage(tmp_path / "s.c")])
    assert not list(tmp_path.iterdir())


@dataclass(frozen=True)
class Learnt:
    """What another backend leaves beside its delegate."""

    kernel_selection_code: str


class SelectingBackend(BackendDetails):
    """Another backend, which links only some kernels too."""

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[Any]) -> PreprocessResult:
        return PreprocessResult(processed_bytes=b"theirs", _delegate_info_meta=Learnt("int selected[] = {1};\n"))


class SelectingPartitioner(Partitioner):
    """Takes everything."""

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        for node in exported_program.graph.nodes:
            if node.op == "call_function":
                node.meta["delegation_tag"] = "all"
        return PartitionResult(exported_program, {"all": DelegationSpec(SelectingBackend.__name__, [])})


def test_the_stage_serves_the_recipe_of_another_backend(tmp_path: Path) -> None:
    recipe = ExportRecipe(name="theirs", lowering_recipe=LoweringRecipe(partitioners=[SelectingPartitioner()]))
    run_recipe(nn.ReLU(), images(1), recipe, [KernelSelectionStage(tmp_path / "theirs.c")])
    assert (tmp_path / "theirs.c").read_text() == "int selected[] = {1};\n"


def test_a_file_that_is_no_c_source_is_refused_beforehand(tmp_path: Path) -> None:
    with pytest.raises(OpenNeutronError, match=r"\.c"):
        KernelSelectionStage(tmp_path / "selection.txt")
