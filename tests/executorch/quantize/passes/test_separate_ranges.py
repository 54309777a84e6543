"""Joins of parts of different ranges: apart at the end of a network, 16 bits in the middle, nothing where one scale does."""

import pytest
import torch
from torch import Tensor, nn

import openneutron
from openneutron.program import Program


class Detector(nn.Module):
    """Boxes in pixels and scores below 1, joined in every way that exporters write it."""

    def __init__(self, size: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.size = size
        self.stem, self.box, self.score = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 4, 1), nn.Conv2d(8, 4, 1)
        self.after = nn.Conv2d(8, 4, 1)

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        """Return joins by cat and transpose, nested cat, slice assignment and stack, and what a layer makes of one."""
        features = self.stem(image).relu()
        boxes, scores = self.box(features).sigmoid() * self.size, self.score(features).sigmoid()
        both = torch.cat([boxes, scores], 1)
        level = both.flatten(2)
        assigned = torch.zeros(1, 8, 8, 8)
        assigned[:, :4] = boxes
        assigned[:, 4:] = scores
        return (
            level.transpose(1, 2),
            torch.cat([level, torch.cat([boxes[..., :4], scores[..., :4]], 1).flatten(2)], 2).permute(0, 2, 1),
            assigned,
            torch.stack([boxes, scores], 1).movedim(2, 4),
            self.after(both),
        )


def compiled(size: float) -> tuple[Program, Tensor, tuple[Tensor, ...]]:
    model, images = Detector(size).eval(), torch.randn(9, 3, 16, 16)
    program = openneutron.compile(model, (images[:1],), calibration=[(one,) for one in images[:8].split(1)])
    return program, images[8:], model(images[8:])


@pytest.fixture(scope="module")
def mixed() -> tuple[Program, Tensor, tuple[Tensor, ...]]:
    return compiled(64.0)


def scores_of(outputs: tuple[Tensor, ...]) -> list[Tensor]:
    return [outputs[0][:, :, 4:], outputs[1][:, :, 4:], outputs[2][:, 4:], outputs[3][:, 1]]


@torch.no_grad()
def test_scores_beside_boxes_keep_their_own_scale(mixed: tuple[Program, Tensor, tuple[Tensor, ...]]) -> None:
    program, image, wanted = mixed
    found = program.run(image)
    assert [one.shape for one in found] == [one.shape for one in wanted]
    for right, ours in zip(scores_of(wanted), scores_of(found), strict=True):
        assert (right - ours).abs().max() < 0.02
        assert ours.unique().numel() > 20


def test_only_joins_run_in_float_and_say_why(mixed: tuple[Program, Tensor, tuple[Tensor, ...]]) -> None:
    left = [one for one in mixed[0].verdicts if not one.delegated and one.code != "border"]
    assert {one.code for one in left} == {"mixed_ranges"}
    assert {one.operator for one in left} == {"aten.cat.default"}  # permutes and reshapes run before it, in INT8
    assert any("joined in float" in one for one in mixed[0].report.notes)


def test_a_join_inside_the_network_takes_16_bits(mixed: tuple[Program, Tensor, tuple[Tensor, ...]]) -> None:
    assert any("with 16-bit activations" in one for one in mixed[0].report.notes)
    assert all(one.delegated for one in mixed[0].verdicts if one.operator == "aten.convolution.default")
    assert mixed[0].report.outputs[4].sqnr > 39


class Scaled(nn.Module):
    """Boxes and scores told apart by the factors of a constant alone."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Conv2d(3, 8, 3)
        self.register_buffer("by", torch.tensor([factor] * 4 + [1.0] * 4)[:, None, None])

    def forward(self, image: Tensor) -> Tensor:
        return self.layer(image).sigmoid() * self.by


@pytest.mark.parametrize("factor", [40.0, 640.0], ids=["few levels left", "zero"])
def test_a_product_whose_small_factors_8_bits_lose_takes_16(factor: float) -> None:
    images = torch.randn(8, 1, 3, 8, 8)
    samples = [(one,) for one in images]
    report = openneutron.compile(Scaled(factor).eval(), samples[0], calibration=samples, quality="plain").report
    (output,) = report.outputs
    assert output.part_sqnr is not None and output.part_sqnr > 25 and not report.warnings
    assert all(one.delegated for one in report.nodes if one.code != "border")


def test_parts_of_like_ranges_stay_joined() -> None:
    program = compiled(8.0)[0]
    assert all(one.delegated for one in program.verdicts if one.operator == "aten.cat.default")
    assert not any("joined" in one for one in program.report.notes)
