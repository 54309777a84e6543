"""Operators that were left in float between integers: each becomes the INT8 operator, and gives what float gives to a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from openneutron.litert import DType, Model, write_model
from openneutron.litert.build import GraphBuilder
from openneutron.litert.passes.drop_tensors import drop_tensors
from openneutron.litert.passes.narrow_operators import narrow_operators, quantization_of
from openneutron.run.runner import LiteRtRunner

SHAPE = (1, 4, 4, 8)
STORED = np.arange(-64, 64, dtype=np.int8).reshape(SHAPE)
SLOPES = np.linspace(-0.5, 0.9, 8, dtype=np.float32).reshape(1, 1, 8)


def island(code: str, more: dict[str, Any], shape: tuple[int, ...], constant: Any = None, reads: int = 1) -> Model:
    """DEQUANTIZE, the operator, QUANTIZE; with `reads` 0 its float output is the model's."""
    g = GraphBuilder()
    x = g.tensor("x", SHAPE, DType.INT8, scale=0.05, zero_point=3)
    wide, made = g.tensor("wide", SHAPE, DType.FLOAT32), g.tensor("made", shape, DType.FLOAT32)
    g.op("DEQUANTIZE", [x], [wide])
    inputs = [wide]
    if constant is not None:
        array = np.asarray(constant)
        inputs.append(g.tensor("constant", array.shape, DType(str(array.dtype)), data=array))
    g.op(code, inputs, [made], **more)
    if not reads:
        return g.finish([x], [made])
    scale = quantization_of(-3.0, 3.5).scalar
    y = g.tensor("y", shape, DType.INT8, scale=scale[0], zero_point=scale[1])
    g.op("QUANTIZE", [made], [y])
    return g.finish([x], [y])


CASES: dict[str, tuple[str, dict[str, Any], tuple[int, ...], Any]] = {
    "a slope for each channel": ("PRELU", {}, SHAPE, SLOPES),
    "one slope": ("LEAKY_RELU", {"alpha": 0.1}, SHAPE, None),
    "at most 6": ("RELU6", {}, SHAPE, None),
    "exponential": ("ELU", {}, SHAPE, None),
    "without sign": ("ABS", {}, SHAPE, None),
    "at most a constant": ("MINIMUM", {}, SHAPE, np.float32(0.5)),
    "channels as pixels": ("DEPTH_TO_SPACE", {"block_size": 2}, (1, 8, 8, 2), None),
    "the largest of a row": ("REDUCE_MAX", {"keep_dims": True}, (1, 4, 1, 8), np.int32([2])),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_operator_between_integers_becomes_one(case: tuple[str, dict[str, Any], tuple[int, ...], Any]) -> None:
    model = island(*case)
    (wanted,) = LiteRtRunner(write_model(model)).run([STORED]).outputs.values()
    assert narrow_operators(model.main, {}) == 1
    drop_tensors(model)
    assert {op.code for op in model.main.operators} <= {case[0], "QUANTIZE"}
    (found,) = LiteRtRunner(write_model(model)).run([STORED]).outputs.values()
    assert found.dtype == np.int8 and len(np.unique(wanted)) > 4
    assert np.abs(found.astype(int) - wanted).max() <= 2  # a step of the slopes, and one of the conversion


def test_an_output_in_float_takes_the_range_that_was_seen() -> None:
    model = island("PRELU", {}, SHAPE, SLOPES, reads=0)
    (wanted,) = LiteRtRunner(write_model(model)).run([STORED]).outputs.values()
    assert narrow_operators(model.main, {"made": (-3.0, 3.5)}) == 1
    assert [op.code for op in model.main.operators] == ["PRELU", "DEQUANTIZE"]
    (found,) = LiteRtRunner(write_model(model)).run([STORED]).outputs.values()
    assert found.dtype == np.float32 and 0 < np.abs(found - wanted).max() < 0.05


@pytest.mark.parametrize(
    "case",
    [("PRELU", {}, SHAPE, SLOPES, 0), ("FLOOR", {}, SHAPE)],
    ids=["no range is known", "no INT8 form"],
)
def test_what_has_no_integer_form_stays(case: Any) -> None:
    model = island(*case)
    before = [op.code for op in model.main.operators]
    assert narrow_operators(model.main, {}) == 0
    assert [op.code for op in model.main.operators] == before


def test_16_bits_before_an_operator_of_8_are_converted() -> None:
    g = GraphBuilder()
    x, wide = g.tensor("x", SHAPE, DType.INT16, scale=0.001, zero_point=0), g.tensor("x_float", SHAPE, DType.FLOAT32)
    made, y = g.tensor("made", SHAPE, DType.FLOAT32), g.tensor("y", SHAPE, DType.INT16, scale=0.001, zero_point=0)
    g.op("DEQUANTIZE", [x], [wide])
    slopes = g.tensor("slopes", SLOPES.shape, DType.FLOAT32, data=SLOPES)
    g.op("PRELU", [wide, slopes], [made])
    g.op("QUANTIZE", [made], [y])
    model = g.finish([x], [y])
    given = [(STORED.astype(np.int16) * 50)]
    (wanted,) = LiteRtRunner(write_model(model)).run(given).outputs.values()
    assert narrow_operators(model.main, {"x": (-3.2, 3.2), "made": (-3.2, 3.2)}) == 1
    drop_tensors(model)
    assert [op.code for op in model.main.operators] == ["QUANTIZE", "PRELU", "QUANTIZE"]
    (found,) = LiteRtRunner(write_model(model)).run(given).outputs.values()
    step = 6.4 / 255
    assert 0 < np.abs(found.astype(int) - wanted).max() * 0.001 < 2 * step
