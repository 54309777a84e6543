"""Conversions by content: made once, kept for one program, bounded."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from openneutron.convert import convert
from openneutron.executorch.deliver import conversion
from openneutron.executorch.pipeline import build
from openneutron.options import Options
from openneutron.report.model import Stock
from openneutron.result import Result
from tests import tiny

OPTIONS = Options(target="imxrt700", source="a partition")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """The options of every conversion that is really made."""
    made: list[Options] = []
    convert = conversion.convert_alone

    def counted(model: bytes, options: Options) -> Result:
        made.append(options)
        return convert(model, options)

    conversion.forget()
    monkeypatch.setattr(conversion, "convert_alone", counted)
    return made


def test_the_same_bytes_and_options_are_converted_once_whatever_they_are_called(calls: list[Options]) -> None:
    first = conversion.converted(tiny.convnet(), OPTIONS)
    again = conversion.converted(tiny.convnet(), replace(OPTIONS, source="the same", partition=3))
    assert first.model == again.model and len(calls) == 1
    assert (first.report.source, again.report.source) == ("a partition", "the same")
    conversion.converted(tiny.convnet(), replace(OPTIONS, target="mcxn94x"))
    conversion.converted(tiny.sandwich(), OPTIONS)
    assert len(calls) == 3
    conversion.forget()
    conversion.converted(tiny.convnet(), OPTIONS)
    assert len(calls) == 4


def test_a_trial_is_completed_where_it_is_delivered(calls: list[Options]) -> None:
    alone = conversion.tried(tiny.convnet(), OPTIONS)
    whole = conversion.converted(tiny.convnet(), OPTIONS)
    fresh = convert(tiny.convnet(), OPTIONS)
    assert len(calls) == 1 and alone.model == whole.model == fresh.model
    assert alone.report.stock == Stock() and whole.report.stock == fresh.report.stock
    assert whole.report.totals == fresh.report.totals, "with an interval"
    assert conversion.converted(tiny.convnet(), OPTIONS) == whole


def test_small_ones_are_kept_while_there_is_room(calls: list[Options]) -> None:
    result = conversion.converted(tiny.convnet(), OPTIONS)
    for number in range(20):
        conversion.remember(b"%d" % number, OPTIONS, result)
    conversion.converted(tiny.convnet(), OPTIONS)
    assert len(calls) == 1


def test_only_the_last_large_ones_are_kept(calls: list[Options], monkeypatch: pytest.MonkeyPatch) -> None:
    result = conversion.converted(tiny.convnet(), OPTIONS)
    monkeypatch.setattr(conversion, "_KEPT_BYTES", len(result.model))
    for number in range(20):
        conversion.remember(b"%d" % number, OPTIONS, result)
    conversion.converted(tiny.convnet(), OPTIONS)
    assert len(calls) == 2 and len(conversion._results) <= 8


def test_what_was_weighed_is_delivered(calls: list[Options]) -> None:
    torch.manual_seed(0)
    image = (torch.randn(1, 8, 16, 16),)
    network = nn.Sequential(nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3)).eval()
    built = build(network, image, calibration=[image], placement="fastest")
    assert len(built.partitions) == 1 and len(calls) == 1


def test_a_partition_that_fits_only_as_a_cascade_is_compiled_once(calls: list[Options]) -> None:
    torch.manual_seed(0)
    image = (torch.rand(1, 3, 100, 100),)
    network = nn.Sequential(nn.Conv2d(3, 60, 3, padding=1), nn.ReLU(), nn.Conv2d(60, 2, 3, padding=1)).eval()
    built = build(network, image, calibration=[image], target="mcxn94x")
    assert len(built.partitions) == 1 and len(calls) == 1
    fresh = convert(built.partitions[0].litert, replace(calls[0], one_graph=True))
    assert fresh.model == built.partitions[0].converted
