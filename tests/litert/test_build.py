import numpy as np
import pytest

from openneutron.errors import OptionError
from openneutron.litert import DType, GraphBuilder, write_model
from tests.litert.samples import run


def test_a_softmax_runs():
    g = GraphBuilder()
    x = g.tensor("x", (1, 4), DType.INT8, scale=0.5, zero_point=-3)
    y = g.tensor("y", (1, 4), "int8", scale=1 / 256, zero_point=-128)
    op = g.op("SOFTMAX", [x], [y], beta=1.0)
    assert (op.version, op.options.beta) == (2, 1.0)
    (out,) = run(write_model(g.finish([x], [y])))
    assert abs(int(out.astype(int).sum() + 4 * 128) - 256) <= 2


def test_scales_are_float32():
    g = GraphBuilder()
    g.tensor("x", (2,), DType.INT8, scale=[0.1, 0.2], zero_point=3)
    quantization = g.graph.tensors[0].quantization
    assert quantization.scale == (float(np.float32(0.1)), float(np.float32(0.2)))
    assert quantization.zero_point == (3, 3)


def test_constants_are_cast_only_without_loss():
    g = GraphBuilder()
    index = g.tensor("k", (3,), DType.INT8, data=[1, 2, -3])
    assert g.graph.tensors[index].data.dtype == np.int8
    with pytest.raises(OptionError, match="data of tensor 'big' does not fit int8"):
        g.tensor("big", (1,), DType.INT8, data=[300])


def test_the_callers_array_stays_writable():
    mine = np.zeros(3, np.int8)
    GraphBuilder().tensor("k", (3,), DType.INT8, data=mine)
    mine[0] = 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"zero_point": 3}, "a zero point but no scale"),
        ({"scale": [1.0, 2.0]}, "2 scales and 2 zero points on axis 0"),
        ({"scale": [1.0] * 3, "zero_point": [0, 0]}, "3 scales and 2 zero points on axis 0"),
        ({"scale": [1.0] * 4, "axis": 2}, "4 scales and 4 zero points on axis 2"),
    ],
)
def test_wrong_quantization_is_refused(arguments, message):
    with pytest.raises(OptionError, match=message):
        GraphBuilder().tensor("x", (3, 4), DType.INT8, **arguments)


def test_options_of_the_second_union():
    g = GraphBuilder()
    tensors = [g.tensor(name, (1,), DType.FLOAT32) for name in "xy"]
    op = g.op("STABLEHLO_IOTA", [tensors[0]], [tensors[1]], iota_dimension=0)
    assert op.options is None
    assert type(op.options2).__name__ == "StablehloIotaOptionsT"


def test_signature_and_description():
    g = GraphBuilder()
    x = g.tensor("x", (1, 4), DType.INT8, scale=0.5)
    y = g.tensor("y", (1, 4), DType.INT8, scale=0.5)
    g.op("RELU", [x], [y])
    model = g.finish([x], [y], description="d", signature="serving_default")
    assert model.signatures[0].inputs == (("x", 0),)
    assert model.description == "d"
