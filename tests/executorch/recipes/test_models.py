"""Networks of the zoo through the recipe for the whole chip, run here."""

from __future__ import annotations

import pytest
import torch

from openneutron import zoo
from openneutron.executorch.pipeline import build
from tests.executorch.recipes.hybrid import check

NAMES = ("cifarnet", "resnet8", "ds_cnn")
LARGE = [pytest.param(name, marks=pytest.mark.full) for name in ("mobilenet_v2_cifar", "mobilenet_v2")]


@pytest.mark.parametrize("name", [*NAMES, *LARGE])
def test_the_program_runs_here_and_every_engine_is_exact(name: str) -> None:
    model = zoo.load(name)
    program = build(model.model, model.example_inputs, calibration=model.calibration[:4], recipe="imxrt700cm")
    assert program.report.whole.recipe == "imxrt700cm"
    computing = [v for v in program.report.nodes if not v.operator.startswith("quantized_decomposed")]
    assert computing and all(v.engine == "neutron" for v in computing), [v for v in computing if v.engine != "neutron"]
    check(
        program,
        tuple(x + 0.1 * torch.randn(x.shape, generator=torch.Generator().manual_seed(1)) for x in model.calibration[0]),
    )
