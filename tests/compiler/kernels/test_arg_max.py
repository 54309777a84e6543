"""arg_max: ARG_MAX and ARG_MIN along any axis, INT32 and INT64, at 0 LSB."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.compiler.kernels.moving import BYTES, Q, fresh, integers, reason, shapes
from tests.golden import TARGETS, ModelMaker, seeds
from tests.sampling import examples

NUMBERS = {DType.INT32: 2, DType.INT64: 4}  # schema's TensorType


def add_search(maker: ModelMaker, code: str, shape: list[int], axis: int, dtype: DType, index: DType) -> None:
    """Add the operator; its output has no quantization."""
    out = [n for at, n in enumerate(shape) if at != axis % len(shape)]
    x = maker.input(shape, dtype, *Q)
    y = maker.builder.tensor(f"index{x}", out, index)
    maker.outputs.append(y)
    maker.op(code, [x, integers(maker, axis)], y, output_type=NUMBERS[index])


@examples(100)
@given(st.data())
def test_any_axis(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(5):
        shape = data.draw(shapes(1, 5))
        axis = data.draw(st.integers(-len(shape), len(shape) - 1))
        code = data.draw(st.sampled_from(["ARG_MAX", "ARG_MIN"]))
        add_search(maker, code, shape, axis, data.draw(BYTES), data.draw(st.sampled_from(list(NUMBERS))))
    maker.check(data.draw(st.sampled_from(TARGETS)))


def test_the_first_of_equals_wins() -> None:
    maker = fresh()
    add_search(maker, "ARG_MAX", [2, 6], 1, DType.INT8, DType.INT32)
    maker.data[0][...] = 5
    maker.check()


def test_refusals() -> None:
    assert "axis is [2]" in reason(lambda m: add_search_at(m, 2))


def add_search_at(maker: ModelMaker, axis: int) -> None:
    x = maker.input((2, 3), DType.INT8, *Q)
    y = maker.builder.tensor("y", (2,), DType.INT32)
    maker.outputs.append(y)
    maker.op("ARG_MAX", [x, integers(maker, axis)], y, output_type=NUMBERS[DType.INT32])
