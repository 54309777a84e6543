import numpy as np
import pytest

from openneutron.litert import DType, Quantization
from openneutron.litert.graph import DTYPES, copy_model
from openneutron.litert.operator_options import schema
from openneutron.litert.passes.drop_tensors import drop_tensors
from openneutron.litert.write import write_model
from tests.litert.samples import convolution


def test_element_types_are_those_of_the_schema():
    numbers = {name: value for name, value in vars(schema().TensorType).items() if not name.startswith("_")}
    assert numbers == {dtype.name: dtype.number for dtype in DTYPES}


@pytest.mark.parametrize(
    ("dtype", "held_as", "bits"),
    [(DType.INT8, "int8", 8), (DType.BOOL, "bool", 8), (DType.INT4, "int8", 4), (DType.BFLOAT16, "uint16", 16)],
)
def test_element_sizes(dtype, held_as, bits):
    assert dtype.numpy == np.dtype(held_as)
    assert dtype.bits == bits
    assert dtype.itemsize == np.dtype(held_as).itemsize


def test_scalar_is_for_per_tensor_only():
    assert Quantization((0.5,), (3,)).scalar == (0.5, 3)
    per_channel = Quantization((0.5, 0.25), (0, 0))
    assert per_channel.per_channel
    with pytest.raises(ValueError, match="2 scales"):
        _ = per_channel.scalar


def test_producers_and_consumers():
    graph = convolution().main
    names = [tensor.name for tensor in graph.tensors]
    assert graph.producers()[names.index("z")] == 1
    assert graph.consumers()[names.index("z")] == [2, 3]
    assert -1 not in graph.consumers()


def test_a_copy_can_be_changed_alone():
    model = convolution()
    before = write_model(model)
    copy = copy_model(model)
    assert write_model(copy) == before
    graph = copy.main
    graph.operators[0].inputs.reverse()
    graph.tensors[0].name = "renamed"
    graph.operators.pop()
    graph.outputs.clear()
    copy.metadata.clear()
    drop_tensors(copy)
    assert write_model(model) == before
