"""div: DIV by one constant, all 256 inputs at 0 LSB."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.compiler.kernels.moving import fresh, reason
from tests.compiler.kernels.test_lut import EVERY_BYTE
from tests.golden import ACTIVATIONS, ModelMaker, f32, scales, zero_points
from tests.sampling import examples


def add_division(
    maker: ModelMaker, dtype: DType, in_q: tuple[float, int], divisor: tuple[int, float, int], out_q: tuple[float, int],
    activation: str = "NONE",
) -> None:  # fmt: skip
    """Add x / constant on all 256 values."""
    x = maker.input((1, 4, 8, 8), dtype, *in_q)
    maker.data[-1] = EVERY_BYTE[dtype].reshape(1, 4, 8, 8).copy()
    stored, scale, zero = divisor
    by = maker.constant([stored], dtype, scale, zero)
    maker.op("DIV", [x, by], maker.output((1, 4, 8, 8), dtype, *out_q), fused_activation_function=activation)


@examples(60)
@given(st.data())
def test_any_constant(data: st.DataObject) -> None:
    maker = fresh()
    for _ in range(8):
        dtype = data.draw(st.sampled_from([DType.INT8, DType.UINT8]))
        limits = np.iinfo(dtype.numpy)
        in_scale, scale = data.draw(scales()), data.draw(scales())
        zero = data.draw(zero_points(dtype))
        stored = data.draw(st.integers(int(limits.min), int(limits.max)).filter(lambda v, z=zero: v != z))
        # From finer than the input's own steps to so coarse that the reference would shift past 31 bits.
        out_scale = f32(in_scale / (abs(stored - zero) * scale) * 2.0 ** data.draw(st.floats(-3, 3)))
        add_division(
            maker, dtype, (in_scale, data.draw(zero_points(dtype))), (stored, scale, zero),
            (out_scale, data.draw(zero_points(dtype))), data.draw(st.sampled_from(ACTIVATIONS)),
        )  # fmt: skip
    maker.check()


def test_refusals() -> None:
    plain = (DType.INT8, (0.1, 0))
    assert "it is zero" in reason(lambda m: add_division(m, *plain, (5, 0.1, 5), (0.1, 0)))
    assert "shifts start at -" in reason(lambda m: add_division(m, *plain, (1, 2.0**-20, 0), (2.0**-20, 0)))

    def by_vector(maker: ModelMaker) -> None:
        x, by = maker.input((1, 4), DType.INT8, 0.1, 0), maker.constant([1, 2, 3, 4], DType.INT8, 0.1, 0)
        maker.op("DIV", [x, by], maker.output((1, 4), DType.INT8, 0.1, 0))

    assert "single constant" in reason(by_vector)
