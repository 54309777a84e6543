"""i.MX RT700 as a whole: who runs what, that the program runs here, and that every engine is exact by its own definition."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from executorch.export import ExportRecipe, export
from torch import nn
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

import openneutron
from openneutron.errors import OptionError
from openneutron.executorch.cortex_m.leftovers import LeftoverQuantizer
from openneutron.executorch.fx import operator_name
from openneutron.executorch.pipeline import build
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.recipes import Imxrt700cmRecipeType, Training, run_recipe
from openneutron.executorch.run.runtime import load_program
from tests.executorch.recipes.hybrid import KEPT, built, check, engines, operators, side_by_side
from tests.executorch.recipes.networks import Crossing, Neither, OnlyCortexM, OnlyLogs, ThreeEngines, images, settled


def test_three_engines_share_a_program_without_requantizing_between_them() -> None:
    program = built(ThreeEngines(), images(3))
    owners = engines(program)
    assert owners["aten.convolution.default"] == owners["aten.avg_pool2d.default"] == "neutron"
    assert owners["aten.log1p.default"] == owners["aten.mul.Tensor"] == "cortex_m"
    assert owners["aten.sin.default"] == "portable"
    names = operators(program)
    # One quantize at the input, one dequantize at the output, and one of each around the sine: none between engines.
    assert sum("quantize_per_tensor" in name and "dequantize" not in name for name in names) == 2
    assert sum("dequantize_per_tensor" in name for name in names) == 2
    sine = next(v for v in program.report.nodes if v.operator == "aten.sin.default")
    assert "Cortex-M has no operator for aten.sin.default" in sine.reason
    check(program, images(1, seed=7)[0])


@pytest.mark.full  # that of cortex_m runs in every run
def test_the_stock_export_gives_the_same_program() -> None:
    model = settled(ThreeEngines())
    options: dict[str, Any] = {"calibration": images(3), "operators_not_to_delegate": KEPT}
    recipe = ExportRecipe.get_recipe(Imxrt700cmRecipeType.INT8_PTQ_PER_CHANNEL, **options)
    (x,) = images(1, seed=7)[0]
    (stock,) = load_program(bytes(export(model, images(1), recipe).get_pte_buffer())).run(x)
    (ours,) = openneutron.compile(model, images(1)[0], recipe="imxrt700cm", **options).run(x)
    assert torch.equal(stock, ours)


def test_one_call_gives_everything_a_program_has() -> None:
    program = openneutron.compile(
        settled(ThreeEngines()), images(1)[0], calibration=images(2), recipe="imxrt700cm",
        operators_not_to_delegate=KEPT, dump_kernel_selection_code=True, dump_intermediates=True,
    )  # fmt: skip
    assert program.kernel_selection.count("neutronKernels") and "partition_0.tflite" in program.intermediates
    assert {v.engine for v in program.verdicts} == {"neutron", "cortex_m", "portable"}
    assert all(v.reason for v in program.verdicts if v.engine == "portable")
    assert program.report.whole.memory_bytes > 0


def test_what_the_npus_quantizer_takes_is_annotated_once() -> None:
    neutron = NeutronQuantizer()
    second = LeftoverQuantizer(neutron.excludes)
    module = torch.export.export(settled(ThreeEngines()), images(1)[0]).module(check_guards=False)
    module = neutron.annotate(neutron.transform_for_annotation(module))
    before = {node.name: node.meta[Q_ANNOTATION_KEY] for node in module.graph.nodes if Q_ANNOTATION_KEY in node.meta}
    second.annotate(module)
    assert set(second.owners.values()) == {"neutron"}
    assert all(node.meta[Q_ANNOTATION_KEY] is before[node.name] for node in module.graph.nodes if node.name in before)


def test_training_works_for_the_whole_chip() -> None:
    """Through the one call and, with the same function, through the recipe: neither needs calibration."""

    def train(model: Any, state: Training) -> None:
        for step in range(1, 4):
            state.step(model(torch.cat([x for (x,) in images(2, 1, 3, 8, 8, seed=step)])).mean().detach(), step, 3)

    model, inputs = settled(Crossing()), images(1, 1, 3, 8, 8)
    program = build(model, inputs[0], recipe="imxrt700cm", train=train, operators_not_to_delegate=KEPT)
    assert set(engines(program).values()) == {"neutron", "cortex_m"}
    check(program, inputs[0])
    recipe = ExportRecipe.get_recipe(
        Imxrt700cmRecipeType.INT8_QAT_PER_CHANNEL, train=train, operators_not_to_delegate=KEPT
    )
    (stock,) = load_program(bytes(run_recipe(model, inputs, recipe).get_pte_buffer())).run(*inputs[0])
    assert torch.equal(stock, load_program(program.pte).run(*inputs[0])[0])


def test_a_program_without_work_for_the_npu() -> None:
    inputs = [(torch.rand(2, 5), torch.rand(2, 5)) for _ in range(3)]
    program = built(
        OnlyCortexM(), inputs, operators_not_to_delegate=("aten.abs.default", "aten.add.Tensor", "aten.mul.Tensor")
    )
    assert not program.partitions and set(engines(program).values()) <= {"cortex_m", "portable"}
    assert {engines(program)[f"aten.{name}.default"] for name in ("log1p", "log2", "log10")} == {"cortex_m"}
    check(program, inputs[-1])


def test_operators_that_neither_engine_has_and_images_of_one_channel() -> None:
    model, inputs = side_by_side(
        {"neither": (Neither(), images(1, 1, 2, 4, 4)[0]), "one_channel": (OnlyLogs(), (torch.rand(1, 1, 6, 6) * 3,))}
    )
    program = built(model, [inputs])
    assert engines(program)["aten.sin.default"] == engines(program)["aten.topk.default"] == "portable"
    assert engines(program)["aten.log1p.default"] == "cortex_m"
    check(program, inputs, in_float=(0,))


# Name → layer and the shape of its input.
LEFTOVERS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "quantized_conv2d_nhwc": (nn.Conv2d(3, 4, 3, padding=1), (1, 3, 6, 6)),
    "quantized_depthwise_conv2d_nhwc": (nn.Conv2d(4, 4, 3, groups=4), (1, 4, 6, 6)),
    "quantized_transpose_conv2d_nhwc": (nn.ConvTranspose2d(3, 2, 2, stride=2), (1, 3, 6, 6)),
    "quantized_linear": (nn.Linear(8, 5), (2, 8)),
    "conv_relu": (nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU()), (1, 3, 6, 6)),
    "linear_biasless": (nn.Linear(8, 5, bias=False), (2, 8)),
}


def test_cortex_m_takes_what_is_kept_from_the_npu_with_int32_biases() -> None:
    """Biases are float until here, and CMSIS adds INT32: against the quantized module a lost bias shows at once."""
    torch.manual_seed(0)
    model, inputs = side_by_side({n: (m, images(1, *shape)[0]) for n, (m, shape) in LEFTOVERS.items()})
    program = built(model, [inputs], operators_not_to_delegate=("aten.convolution.default", "aten.*mm.default"))
    names = operators(program)
    assert not program.partitions
    assert all(f"cortex_m.{name}.default" in names for name in LEFTOVERS if name.startswith("quantized")), names
    check(program, inputs)
    results = load_program(program.pte).run(*inputs)
    for name, got, wanted in zip(LEFTOVERS, results, program.quantized(*inputs), strict=True):  # type: ignore[misc]
        assert (got - wanted).abs().max() <= (wanted.max() - wanted.min()) / 100, name


def test_per_channel_linear_weights_stay_portable_with_that_reason() -> None:
    inputs = images(2, 2, 8)
    program = built(
        nn.Sequential(nn.Linear(8, 5)), inputs, operators_not_to_delegate=("aten.*mm.default",),
        quantization={"layer": [{"name": "Linear", "per_channel": True}]},
    )  # fmt: skip
    reasons = [v.reason for v in program.report.nodes if v.engine == "portable"]
    assert any("its weights have 5 scales" in reason for reason in reasons), reasons
    check(program, inputs[0])


def test_what_the_user_keeps_in_float_stays_float() -> None:
    recipe = ExportRecipe.get_recipe(
        Imxrt700cmRecipeType.INT8_PTQ_PER_TENSOR, calibration=images(2), exclude=["aten.log1p.default"]
    )
    session = export(settled(ThreeEngines()), images(1), recipe)
    names = [
        operator_name(n)
        for n in session.get_stage_artifacts()["edge_program_manager_transform"].data.exported_program().graph.nodes
    ]
    assert {"aten.log1p.default", "aten.log1p.out"} & set(names), names


def test_the_report_has_the_whole_program() -> None:
    report = built(ThreeEngines(), images(2)).report
    whole = report.whole
    assert whole.recipe == "imxrt700cm"
    assert whole.npu_milliseconds == pytest.approx(report.totals.milliseconds)
    parts = (whole.npu_milliseconds, whole.cpu_milliseconds, whole.call_milliseconds, whole.copy_milliseconds)
    assert min(parts) > 0 and whole.milliseconds == pytest.approx(sum(parts))
    assert whole.arena_bytes > 0 and whole.delegate_bytes >= report.totals.scratch_bytes


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"recipe": "imxrt700"}, "recipe is 'imxrt700'.*imxrt700cm"),
        ({"recipe": "imxrt700cm", "target": "mcxn94x"}, "is for imxrt700, the target is mcxn94x"),
        ({"placement": "best"}, "placement is 'best'"),
        ({"calibration": None}, "calibration"),
        ({"calibration": images(1, 1, 3, 9, 9)}, r"calibration\[0\] is .*\[1, 3, 9, 9\].*\[1, 3, 16, 16\]"),
    ],
    ids=["recipe", "target", "placement", "no_calibration", "wrong_shape"],
)
def test_wrong_names_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        openneutron.compile(settled(ThreeEngines()), images(1)[0], **{"calibration": images(1), **options})
