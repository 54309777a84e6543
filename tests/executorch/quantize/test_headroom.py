"""Activations of 16 bits have room beyond what calibration saw; those of 8 bits have none to give away."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from openneutron.executorch.capture.export import export
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.accuracy import output_sqnr
from openneutron.executorch.quantize.headroom import HEADROOM, HeadroomObserver, PartObserver
from openneutron.executorch.quantize.pt2e import calibrate, convert, prepare
from openneutron.executorch.quantize.specs import OBSERVERS


def test_the_scale_is_that_of_twice_the_range() -> None:
    observer = HeadroomObserver(
        dtype=torch.int16, qscheme=torch.per_tensor_symmetric, quant_min=-32768, quant_max=32767
    )
    observer(torch.tensor([-0.5, 3.0]))
    scale, zero_point = observer.calculate_qparams()
    assert int(zero_point) == 0
    assert abs(float(scale) * 32767.5 - HEADROOM * 3.0) < 1e-3


def _sqnr(**options: str) -> float:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval(), torch.randn(4, 8)
    prepared = prepare(export(model, (x,)), NeutronQuantizer(**options))
    calibrate(prepared, [(x,)])
    louder = 1.8 * x
    with torch.no_grad():
        (found,) = output_sqnr([model(louder)], [convert(prepared)(louder)])
    return found


@pytest.mark.parametrize("observer", sorted(OBSERVERS))
def test_an_input_louder_than_all_that_was_seen_is_not_cut_off(observer: str) -> None:
    assert _sqnr(activations="int16", observer=observer) > 35 > _sqnr(activations="int8", observer=observer)


def test_a_part_of_the_range_begins_at_zero() -> None:
    observer = PartObserver(
        part=1 / 4, dtype=torch.int8, qscheme=torch.per_tensor_affine, quant_min=-128, quant_max=127
    )
    observer(torch.tensor([0.5, 10.2]))
    scale, zero_point = observer.calculate_qparams()
    assert abs(float(scale) * 255 - 10.2 / 4) < 1e-5 and int(zero_point) == -128
