"""Quantization specs: activations of 8 and 16 bits, weights, fixed parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torchao.quantization.pt2e.fake_quantize import FakeQuantize, FusedMovingAvgObsFakeQuantize
from torchao.quantization.pt2e.observer import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
)
from torchao.quantization.pt2e.quantizer import FixedQParamsQuantizationSpec, QuantizationSpec

from openneutron.errors import OptionError
from openneutron.executorch.quantize.choices import GROUP_SIZE, PERCENTILE
from openneutron.executorch.quantize.four_bit import GroupedWeights, fits
from openneutron.executorch.quantize.headroom import HeadroomObserver, PartObserver
from openneutron.executorch.quantize.least_error import LeastErrorObserver
from openneutron.executorch.quantize.percentile import PercentileObserver
from openneutron.executorch.upstream.histogram import histogram_observer
from openneutron.options import WEIGHTS

OBSERVERS = {
    "histogram": HistogramObserver, "minmax": MinMaxObserver, "moving_average": MovingAverageMinMaxObserver,
    "percentile": PercentileObserver, "mse": LeastErrorObserver,
}  # fmt: skip

# Smallest scale an observer may find. A constant tensor or channel would otherwise get about 1e-7, and a bias divided
# by the product of two such scales overflows INT32; at 2^-20 a full range is 2.4e-4, below what INT8 activations
# resolve.
SMALLEST_SCALE = 2.0**-20
RANGE_KEY = "openneutron_range"  # of nodes that read a part of their input's range, from 0 on: what is larger saturates
SMALLEST_WIDE_SCALE = SMALLEST_SCALE / 256  # the same full range in 16 bits


@dataclass(frozen=True)
class Specs:
    """Makes the specs of one quantizer; `per_channel` None: scales per channel for convolutions alone."""

    is_qat: bool
    per_channel: bool | None
    observer: str
    percentile: float = PERCENTILE
    weights: str = "int8"
    group_size: int = GROUP_SIZE

    def __post_init__(self) -> None:
        if self.weights == "int4" and self.is_qat:
            raise OptionError(
                "4-bit weights are made after training", hint="train with 8-bit weights, or quantize with data"
            )
        if self.observer not in OBSERVERS:
            raise OptionError(f"observer is {self.observer!r}", hint=f"one of {', '.join(OBSERVERS)}")
        if self.weights not in WEIGHTS:
            raise OptionError(f"weights is {self.weights!r}", hint=f"one of {', '.join(WEIGHTS)}")

    def activation(self, dtype: torch.dtype = torch.int8) -> QuantizationSpec:
        """INT8 affine, or INT16 symmetric, per tensor over the full range."""
        if dtype is torch.int16:
            return self._wide()
        maker = (
            FusedMovingAvgObsFakeQuantize.with_args(observer=MovingAverageMinMaxObserver, eps=SMALLEST_SCALE)
            if self.is_qat
            else self._observer(self.observer, SMALLEST_SCALE)
        )
        return QuantizationSpec(
            dtype=torch.int8, observer_or_fake_quant_ctr=maker, quant_min=-128, quant_max=127,
            qscheme=torch.per_tensor_affine,
        )  # fmt: skip

    def part_of_range(self, part: float) -> QuantizationSpec:
        """Return INT8 over the lowest part of the observed range, from 0 on, in which nothing is clipped but what is larger."""
        return QuantizationSpec(
            dtype=torch.int8, quant_min=-128, quant_max=127, qscheme=torch.per_tensor_affine,
            observer_or_fake_quant_ctr=PartObserver.with_args(part=part, eps=SMALLEST_SCALE),
        )  # fmt: skip

    def _wide(self) -> QuantizationSpec:
        """Return the INT16 spec, with headroom beyond the observed range, whatever the observer of 8 bits is.

        Clipping gains nothing at 16 bits, and values of samples that set no range would be clipped.
        """
        maker = (
            FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, eps=SMALLEST_WIDE_SCALE)
            if self.is_qat
            else HeadroomObserver.with_args(eps=SMALLEST_WIDE_SCALE)
        )
        return QuantizationSpec(
            dtype=torch.int16, observer_or_fake_quant_ctr=maker, quant_min=-32768, quant_max=32767,
            qscheme=torch.per_tensor_symmetric,
        )  # fmt: skip

    def _observer(self, name: str, smallest: float) -> Any:
        more = {"percentile": self.percentile} if name == "percentile" else {}
        kind = histogram_observer() if name == "histogram" else OBSERVERS[name]
        return kind.with_args(eps=smallest, **more)

    def table(self) -> QuantizationSpec:
        """Return INT8 over the whole range of a table whose rows are looked up, symmetric."""
        return QuantizationSpec(
            dtype=torch.int8, quant_min=-128, quant_max=127, qscheme=torch.per_tensor_symmetric,
            observer_or_fake_quant_ctr=MinMaxObserver.with_args(
                eps=SMALLEST_SCALE, qscheme=torch.per_tensor_symmetric, quant_min=-128, quant_max=127
            ),
        )  # fmt: skip

    def weight(
        self, channel_axis: int = 0, *, convolution: bool = False, shape: torch.Size | None = None
    ) -> QuantizationSpec:
        """INT8 symmetric in [-127, 127], per tensor or per slice of `channel_axis`; of 4 bits where these fit the shape."""
        if self.weights == "int4" and shape is not None and fits(shape, channel_axis):
            return QuantizationSpec(
                dtype=torch.int8, quant_min=-127, quant_max=127, qscheme=torch.per_channel_symmetric, ch_axis=channel_axis,
                observer_or_fake_quant_ctr=GroupedWeights.with_args(
                    axis=channel_axis, group_size=self.group_size, least_scale=SMALLEST_SCALE
                ),
            )  # fmt: skip
        per_channel = convolution if self.per_channel is None else self.per_channel
        if per_channel:
            plain, moving = PerChannelMinMaxObserver, MovingAveragePerChannelMinMaxObserver
        else:
            plain, moving = MinMaxObserver, MovingAverageMinMaxObserver
        # torchao hands the axis to observers per channel alone, not to a FakeQuantize around one.
        axis = {"ch_axis": channel_axis} if per_channel else {}
        maker = (
            FakeQuantize.with_args(observer=moving, eps=SMALLEST_SCALE, **axis)
            if self.is_qat
            else plain.with_args(eps=SMALLEST_SCALE)
        )
        return QuantizationSpec(
            dtype=torch.int8, observer_or_fake_quant_ctr=maker, quant_min=-127, quant_max=127,
            qscheme=torch.per_channel_symmetric if per_channel else torch.per_tensor_symmetric,
            ch_axis=channel_axis if per_channel else None,
        )  # fmt: skip


def fixed_parameters(scale: float, zero_point: int, dtype: torch.dtype = torch.int8) -> FixedQParamsQuantizationSpec:
    """Return INT8 or INT16 with parameters that no calibration changes."""
    limits = torch.iinfo(dtype)
    return FixedQParamsQuantizationSpec(
        dtype=dtype, scale=scale, zero_point=zero_point, quant_min=limits.min, quant_max=limits.max,
        qscheme=torch.per_tensor_affine,
    )  # fmt: skip
