"""`placement="fastest"`: a partition that loses stays on the CPU, and the report says by how much."""

from __future__ import annotations

import pytest
from torch import nn

from openneutron.errors import OptionError
from openneutron.executorch.compile_spec import generate_neutron_compile_spec
from openneutron.executorch.partition.partitioner import NeutronPartitioner
from openneutron.executorch.pipeline import Built, build
from tests.executorch.recipes.hybrid import check
from tests.executorch.recipes.networks import ThreeEngines, images, settled

TINY = (nn.Sequential(nn.Linear(4, 2)), images(2, 1, 4))
SMALL = (nn.Sequential(nn.Conv2d(3, 2, 1)), images(2, 1, 3, 2, 2))


def placed(model: nn.Module, inputs: list[tuple[object, ...]], placement: str, recipe: str = "imxrt700cm") -> Built:
    return build(settled(model), inputs[0], calibration=inputs, recipe=recipe, placement=placement)  # type: ignore[arg-type]


def test_a_tiny_partition_stays_on_the_cpu_with_the_reason() -> None:
    model, inputs = TINY
    small = placed(model, inputs, "fastest")
    verdict = next(v for v in small.report.nodes if v.code == "slower_on_npu" and "mm" in v.operator)
    assert verdict.engine == "cortex_m" and not small.partitions
    assert "the CPU takes about" in verdict.reason and "for the call" in verdict.reason
    check(small, inputs[0])
    everything = placed(model, inputs, "all")
    assert len(everything.partitions) == 1
    assert small.report.whole.milliseconds < everything.report.whole.milliseconds


def test_a_large_partition_goes_to_the_npu() -> None:
    assert len(placed(nn.Sequential(nn.Conv2d(3, 16, 3)), images(2), "fastest").partitions) == 1


@pytest.mark.parametrize("recipe", ["imxrt700cm", pytest.param("neutron", marks=pytest.mark.full)])
def test_fastest_is_never_slower_as_a_whole(recipe: str) -> None:
    """Compared with the kernels that would run instead: with the NPU alone these are portable ones, in float."""
    for model, inputs in (TINY, SMALL, (ThreeEngines(), images(2))):
        fastest, everything = (placed(model, inputs, placement, recipe) for placement in ("fastest", "all"))
        assert fastest.report.whole.milliseconds <= everything.report.whole.milliseconds


@pytest.mark.parametrize(
    ("target", "placement", "options", "sentence"),
    [
        ("imxrt700", "best", {}, "placement is 'best'.*one of all, fastest"),
        ("imx943", "fastest", {"converter": "nxp"}, "no model of imx943's CPU"),
        ("imxrt700", "fastest", {"converter": "nxp"}, "nxp converter predicts no cycles"),
    ],
    ids=["unknown", "no_cpu_model", "no_machine_model"],
)
def test_what_cannot_be_compared_is_refused(
    target: str, placement: str, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(OptionError, match=sentence):
        NeutronPartitioner(generate_neutron_compile_spec(target, **options), placement=placement)  # type: ignore[arg-type]
