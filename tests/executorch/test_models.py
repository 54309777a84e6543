"""Whole models of the zoo, from PyTorch to the runtime: one partition, nothing but the border on the CPU, few transposes.

The runtime's bytes equal LiteRT's reference on the model that was compiled. From the converted PT2E graph they differ by
roundings that pile up with depth: by less than the quantization itself differs from float, and by at most half a step of
the output per operator on the way, root mean square (weights are random, so that errors meet and grow as in no trained
network; the trained ones stay within two steps). The simulator's timeline is the compiler's, event by event.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from executorch.exir.delegate import executorch_call_delegate

from openneutron import zoo
from openneutron.analyze.profile import profile
from openneutron.cli.inputs.bundle import codes_of
from openneutron.executorch.fx import value_of
from openneutron.executorch.lower.values import CHANNELS_LAST
from openneutron.executorch.pipeline import Built, build
from openneutron.executorch.run.runtime import load_program
from openneutron.litert.graph import Graph
from openneutron.litert.read import read_model
from openneutron.machine import targets
from tests.executorch.harness import _expected, representable

CNNS = (
    "autoencoder", "cifarnet", "detector", "ds_cnn", "efficientnet_lite0", "mobilenet_v2", "resnet18", "resnet20",
    "resnet8", "tcn", "unet", "vww_mobilenet_v1",
)  # fmt: skip
NO_IMAGES = frozenset({"autoencoder", "tcn"})
OTHERS = ("gru_kws", "lstm_kws", "vit_block")
# Small ones with every kind of layer; all the others take minutes together.
QUICK = ("cifarnet", "detector", "ds_cnn", "tcn", "unet", "vit_block")
# Samples for calibration: these tests need plausible ranges, not the best ones.
SAMPLES = 4
# Operators that move stored values and round nothing.
EXACT = frozenset({"RESHAPE", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "PAD", "CONCATENATION", "MAX_POOL_2D",
                   "RESIZE_NEAREST_NEIGHBOR"})  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A model, the layout of its images, and the chip."""

    name: str
    channels_last: bool = False
    target: str = "imxrt700"

    def __str__(self) -> str:
        return f"{self.name}{', channels last' if self.channels_last else ''} on {self.target}"


def cases() -> list[Any]:
    """Quick ones in the default layout, one of them channels-last and one per target; the rest is for `make test-full`."""
    quick = {Case(name) for name in QUICK} | {Case("ds_cnn", True), Case("cifarnet", True)}
    quick |= {Case("ds_cnn", target=target) for target in targets.geometries()}
    sweep = [Case(name) for name in (*CNNS, *OTHERS)]
    sweep += [Case(name, channels_last=True) for name in CNNS if name not in NO_IMAGES]
    sweep += [Case(name, target=target) for name in (*CNNS, *OTHERS) for target in targets.geometries()]
    return [
        pytest.param(case, id=str(case), marks=() if case in quick else pytest.mark.full)
        for case in dict.fromkeys(sweep)
    ]


@pytest.mark.parametrize("case", cases())
def test_a_model_runs_on_the_npu_bit_for_bit(case: Case) -> None:
    model = zoo.load(case.name)
    built = build(
        model.model, model.example_inputs, calibration=model.calibration[:SAMPLES], channels_last=case.channels_last,
        target=case.target,
    )  # fmt: skip
    left = [v for v in built.report.nodes if not v.delegated]
    assert all(v.reason for v in left)
    assert {v.code for v in left} == {"border"}, [f"{v.operator}: {v.reason}" for v in left if v.code != "border"]
    assert len(built.partitions) == 1
    if case.name in CNNS:
        assert transposes(built) <= (0 if case.channels_last else 2)
    assert_timeline(built)
    x = in_layout(representable(built, model.calibration[-1]), case.channels_last)
    got = load_program(built.pte).run(*x)
    with torch.no_grad():
        wanted, exact = as_tuple(built.quantized(*x)), as_tuple(model.model(*x))  # type: ignore[misc]
    steps = depth(read_model(built.partitions[0].litert).main)
    golden = _expected(built, dict(zip(built.edge.graph_signature.user_inputs, x, strict=True)))
    for y, pt2e, real, (stored, scale, zero) in zip(got, wanted, exact, golden, strict=True):
        here = np.rint(y.numpy().astype(np.float64) / scale).astype(int) + zero
        assert np.array_equal(here, stored.astype(int)), "the runtime's bytes are not the reference's"
        apart = (y - pt2e).double().square().mean()
        cost = (real - pt2e).double().square().mean()
        # A quarter above it, where both are small and one lucky rounding decides.
        assert apart <= 1.25 * cost + scale**2
        limit = 2.0 if model.trained else max(2.0, 0.75 * steps, float(cost.sqrt()) / scale)
        assert apart.sqrt() <= limit * scale, f"{apart.sqrt() / scale:.2f} steps from PT2E after {steps} operators"


def assert_timeline(built: Built) -> None:
    """Prediction and simulation are separate programs: every call and copy starts and ends in the same cycle in both."""
    measured = profile(codes_of(Path("model.pte"), built.pte, Path("no bundle")), source="")
    assert measured.totals.cycles == built.report.totals.cycles
    for one, two in zip(measured.events, built.report.events, strict=True):
        assert one == two


def as_tuple(values: Any) -> tuple[torch.Tensor, ...]:
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def in_layout(inputs: tuple[torch.Tensor, ...], channels_last: bool) -> tuple[torch.Tensor, ...]:
    last = torch.channels_last
    return tuple(x.to(memory_format=last) if channels_last and x.dim() == 4 else x for x in inputs)


def depth(graph: Graph) -> int:
    """The most operators that round between an input and an output."""
    found: dict[int, int] = {}
    for op in graph.operators:
        level = max((found.get(index, 0) for index in op.inputs), default=0) + (op.code not in EXACT)
        found |= dict.fromkeys(op.outputs, level)
    return max(found[index] for index in graph.outputs)


def transposes(built: Built) -> int:
    """Those inside the partitions, and those the delegate does at its border."""
    count = sum(partition.transposes for partition in built.partitions)
    calls = [node for node in built.edge.graph.nodes if node.target is executorch_call_delegate]
    for node, partition in zip(calls, built.partitions, strict=True):
        given = [value_of(argument) for argument in node.args[1:]]
        borders = [
            (given[place], layout) for place, layout in zip(partition.input_map, partition.input_formats, strict=True)
        ]
        borders += list(zip(value_of(node), partition.output_formats, strict=True))
        count += sum(layout == CHANNELS_LAST and not is_channels_last(value) for value, layout in borders)
    return count


def is_channels_last(value: torch.Tensor) -> bool:
    return value.dim() == 4 and value.is_contiguous(memory_format=torch.channels_last)
