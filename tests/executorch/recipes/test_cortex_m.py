"""Cortex-M alone, and what happens without its extra package."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import pytest
import torch
from executorch.export import ExportRecipe, export

import openneutron
from openneutron.errors import OpenNeutronError, OptionError
from openneutron.executorch.pipeline import build
from openneutron.executorch.recipes import CortexMRecipeType, Imxrt700cmRecipeType
from openneutron.executorch.run.runtime import load_program
from tests.executorch.recipes.hybrid import golden
from tests.executorch.recipes.networks import ThreeEngines, images, settled


def test_the_recipe_runs_here_and_equals_the_references() -> None:
    program = build(settled(ThreeEngines()), images(1)[0], calibration=images(3), recipe="cortex_m")
    assert not program.partitions and program.report.whole.npu_milliseconds == 0
    assert {v.engine for v in program.report.nodes} == {"cortex_m", "portable"}
    (x,) = images(1, seed=5)[0]
    (got,) = load_program(program.pte).run(x)
    assert torch.equal(got, golden(program, (x,))[0])


def test_the_stock_export_gives_the_same_program() -> None:
    model = settled(ThreeEngines())
    recipe = ExportRecipe.get_recipe(CortexMRecipeType.INT8_PTQ, calibration=images(3))
    (x,) = images(1, seed=5)[0]
    (stock,) = load_program(bytes(export(model, images(1), recipe).get_pte_buffer())).run(x)
    (ours,) = openneutron.compile(model, images(1)[0], calibration=images(3), recipe="cortex_m").run(x)
    assert torch.equal(stock, ours)


def test_an_unknown_core_is_refused_with_the_known_ones() -> None:
    with pytest.raises(OptionError, match=r"cpu is 'cortex-m99'.*cortex-m33"):
        ExportRecipe.get_recipe(CortexMRecipeType.INT8_PTQ, cpu="cortex-m99")
    with pytest.raises(OptionError, match="unknown option 'observer'; it has calibration, cpu"):
        ExportRecipe.get_recipe(CortexMRecipeType.INT8_PTQ, observer="minmax")
    with pytest.raises(OptionError, match="cpu is 33"):
        ExportRecipe.get_recipe(CortexMRecipeType.INT8_PTQ, cpu=33)


@pytest.mark.parametrize("kind", [CortexMRecipeType.INT8_PTQ, Imxrt700cmRecipeType.INT8_PTQ_PER_TENSOR])
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(("tosa", "executorch.backends.cortex_m"))]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("executorch.backends.cortex_m"):
            raise ModuleNotFoundError("No module named 'tosa_serializer'", name="tosa_serializer")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(OpenNeutronError, match=r"needs tosa-tools.*pip install --no-deps tosa-tools==2026\.5\.0"):
        ExportRecipe.get_recipe(kind)
