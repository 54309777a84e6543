import numpy as np
import pytest

from openneutron.errors import FormatError
from openneutron.litert import DType, GraphBuilder, read_model, write_model
from openneutron.litert.operator_options import schema
from tests.litert.samples import SAMPLES, convolution, custom, quantize_and_scalars, sparse


def unpacked(model):
    """The schema's own objects of a written model, to be damaged."""
    return schema().ModelT.InitFromPackedBuf(write_model(model))


def packed(model_object):
    import flatbuffers

    builder = flatbuffers.Builder(1 << 14)
    builder.Finish(model_object.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


@pytest.mark.parametrize("name", SAMPLES)
def test_reads_back_what_was_built(name):
    built = SAMPLES[name]()
    read = read_model(write_model(built))
    assert (read.description, read.signatures, read.metadata) == (built.description, built.signatures, built.metadata)
    assert len(read.graphs) == len(built.graphs)
    for ours, theirs in zip(read.graphs, built.graphs, strict=True):
        assert (ours.name, ours.inputs, ours.outputs) == (theirs.name, theirs.inputs, theirs.outputs)
        for a, b in zip(ours.tensors, theirs.tensors, strict=True):
            assert (a.name, a.shape, a.dtype, a.quantization) == (b.name, b.shape, b.dtype, b.quantization)
            assert (a.is_variable, a.shape_signature) == (b.is_variable, b.shape_signature)
            assert a.is_constant == b.is_constant
            if a.data is not None:
                assert a.data.dtype == a.dtype.numpy
                np.testing.assert_array_equal(a.data, b.data)
                assert not a.data.flags.writeable
        for a, b in zip(ours.operators, theirs.operators, strict=True):
            assert (a.code, a.inputs, a.outputs, a.version) == (b.code, b.inputs, b.outputs, b.version)
            assert (a.custom_code, a.custom_options) == (b.custom_code, b.custom_options)
            assert a.mutating_variable_inputs == b.mutating_variable_inputs
            assert type(a.options) is type(b.options)
            for field, value in vars(a.options).items() if a.options is not None else ():
                np.testing.assert_array_equal(value, getattr(b.options, field))


def test_constants_are_views_of_the_file():
    data = write_model(convolution())
    whole = np.frombuffer(data, np.uint8)
    constants = [tensor.data for tensor in read_model(data).main.tensors if tensor.is_constant]
    assert len(constants) == 4
    assert all(np.shares_memory(value, whole) for value in constants)


def test_a_memoryview_of_a_writable_buffer_gives_read_only_constants():
    data = bytearray(write_model(convolution()))
    assert not any(t.data.flags.writeable for t in read_model(memoryview(data)).main.tensors if t.is_constant)


def test_files_from_before_builtin_code_was_widened():
    model = unpacked(quantize_and_scalars())
    for code in model.operatorCodes:
        code.builtinCode = 0
    codes = [op.code for op in read_model(packed(model)).main.operators]
    assert codes == ["QUANTIZE", "RESHAPE", "SPLIT", "SUM", "DEQUANTIZE"]


def test_numbers_above_127_win_over_the_placeholder():
    assert [op.code for op in read_model(write_model(custom())).main.operators] == ["CUSTOM", "GELU", "RELU_0_TO_1"]


def test_bias_marked_with_the_axis_of_its_weights():
    model = unpacked(convolution())
    bias = model.subgraphs[0].tensors[2]
    bias.quantization.quantizedDimension = 3
    quantization = read_model(packed(model)).main.tensors[2].quantization
    assert (len(quantization.scale), quantization.axis) == (8, 0)


def test_missing_zero_points_are_zero():
    model = unpacked(convolution())
    model.subgraphs[0].tensors[1].quantization.zeroPoint = None
    assert read_model(packed(model)).main.tensors[1].quantization.zero_point == (0,) * 8


def test_scale_without_use_may_be_anything():
    model = unpacked(convolution())
    stray = schema().TensorT(shape=[4], type=DType.INT8.number, name="stray")
    stray.quantization = schema().QuantizationParametersT(scale=[float("nan")], zeroPoint=[0])
    model.subgraphs[0].tensors.append(stray)
    assert read_model(packed(model)).main.tensors[-1].name == "stray"


def test_buffers_after_the_flatbuffer():
    data = write_model(convolution(), buffers_after=True)
    np.testing.assert_array_equal(read_model(data).main.tensors[1].data, convolution().main.tensors[1].data)
    with pytest.raises(FormatError, match=r"buffer \d+, byte \d+: \d+ bytes at offset \d+ lie outside"):
        read_model(data[:-600])


def test_large_custom_options_live_behind_the_flatbuffer():
    model = custom()
    model.main.operators[0].large_custom_options = True
    again = read_model(write_model(model)).main.operators[0]
    assert (again.custom_options, again.large_custom_options) == (b"\x01options", True)


def test_sparse_constants_are_dense_in_memory_and_sparse_in_the_file():
    tensor = read_model(write_model(sparse())).main.tensors[1]
    np.testing.assert_array_equal(tensor.data, [[0, 2, 0, 0], [0, 0, 0, 0], [1, 0, 0, -5]])
    assert tensor.sparsity.values.nbytes == 12


def damage_shape(model):
    model.subgraphs[0].tensors[0].shape = [1 << 16, 1 << 16]


def damage_negative(model):
    model.subgraphs[0].tensors[0].shape = [1, -8, 8, 3]


def damage_rank(model):
    model.subgraphs[0].tensors[0].shape = [1] * 33


def damage_type(model):
    model.subgraphs[0].tensors[1].type = 99


def damage_wrong_type(model):
    model.subgraphs[0].tensors[1].type = DType.INT32.number


def damage_buffer(model):
    model.subgraphs[0].tensors[1].buffer = 1000


def damage_external(model):
    model.subgraphs[0].tensors[1].externalBuffer = 1


def damage_scales(model):
    model.subgraphs[0].tensors[1].quantization.scale = [1.0] * 3


def damage_zero_points(model):
    model.subgraphs[0].tensors[1].quantization.zeroPoint = [0] * 3


def damage_scale(model):
    model.subgraphs[0].tensors[0].quantization.scale = [float("inf")]


def damage_zero_scale(model):
    model.subgraphs[0].tensors[0].quantization.scale = [0.0]


def damage_zero_point(model):
    model.subgraphs[0].tensors[0].quantization.zeroPoint = [128]


def damage_signature(model):
    model.signatureDefs[0].inputs[0].tensorIndex = 55


def damage_signature_graph(model):
    model.signatureDefs[0].subgraphIndex = 3


def damage_shape_signature(model):
    model.subgraphs[0].tensors[0].shapeSignature = [-1, 8]


def damage_variable(model):
    model.subgraphs[0].tensors[1].isVariable = True


def damage_operator_code(model):
    model.subgraphs[0].operators[1].opcodeIndex = 40


def damage_builtin(model):
    model.operatorCodes[0].builtinCode = 5000


def damage_options(model):
    model.subgraphs[0].operators[0].builtinOptionsType = schema().BuiltinOptions.AddOptions


def damage_options_type(model):
    model.subgraphs[0].operators[0].builtinOptionsType = 250


def damage_version(model):
    model.version = 2


def damage_graphs(model):
    model.subgraphs = None


def damage_metadata(model):
    model.metadata[0].buffer = 99


DAMAGES = {
    damage_shape: "graph 0, tensor 0, byte N: shape [65536, 65536] has more than 2^31 elements",
    damage_negative: "graph 0, tensor 0, byte N: shape [1, -8, 8, 3] has a negative size",
    damage_rank: "graph 0, tensor 0, byte N: the tensor has 33 dimensions",
    damage_type: "graph 0, tensor 1, byte N: element type 99 does not exist",
    damage_wrong_type: "tensor 1, byte N: its buffer has 216 bytes, but int32 of shape [8, 3, 3, 3] needs 864",
    damage_buffer: "graph 0, tensor 1, byte N: buffer 1000 does not exist, the file has",
    damage_external: "graph 0, tensor 1, byte N: the tensor's value is in another file",
    damage_scales: "graph 0, tensor 1, byte N: 3 scales do not fit dimension 0 of shape [8, 3, 3, 3]",
    damage_zero_points: "graph 0, tensor 1, byte N: there are 8 scales but 3 zero points",
    damage_scale: "graph 0, tensor 0: its scale is inf",
    damage_zero_scale: "graph 0, tensor 0: its scale is 0",
    damage_zero_point: "graph 0, tensor 0: its zero point 128 lies outside int8",
    damage_signature: "signature 'serving_default': argument 'x' names tensor 55 of 9",
    damage_signature_graph: "signature 'serving_default': it names graph 3 of 1",
    damage_shape_signature: "tensor 0, byte N: the shape signature has 2 dimensions, the shape 4",
    damage_variable: "graph 0, tensor 1, byte N: the tensor is a variable and a constant at once",
    damage_operator_code: "graph 0, operator 1, byte N: operator code 40 does not exist, the file has 3",
    damage_builtin: "graph 0, operator 0, byte N: builtin operator 5000 is unknown",
    damage_options: "graph 0, operator 0 (CONV_2D), byte N: it carries AddOptions instead of Conv2DOptions",
    damage_options_type: "graph 0, operator 0 (CONV_2D), byte N: options type 250 does not exist",
    damage_version: "model, byte N: the schema version is 2, not 3",
    damage_graphs: "the model has no graph",
    damage_metadata: "metadata 0, byte N: buffer 99 does not exist",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_named(damage):
    model = unpacked(convolution())
    damage(model)
    with pytest.raises(FormatError) as caught:
        read_model(packed(model), source="m.tflite")
    text = str(caught.value)
    assert text.startswith("m.tflite")
    head, _, tail = DAMAGES[damage].partition("byte N")
    assert head in text
    assert tail in text
    assert not tail or ", byte " in text


def test_sparse_bomb_is_refused():
    s = schema()
    model = unpacked(sparse())
    tensor = model.subgraphs[0].tensors[1]
    tensor.shape = [3, 1 << 29]
    tensor.sparsity.dimMetadata[1].arrayIndices = s.Uint8VectorT(np.array([1, 0, 3], np.uint8))
    with pytest.raises(FormatError, match="take more than 128 MiB when expanded"):
        read_model(packed(model))


@pytest.mark.parametrize("indices", [[1, 0, 4], [1, 0]], ids=["outside", "too few"])
def test_inconsistent_sparsity_is_refused(indices):
    model = unpacked(sparse())
    level = model.subgraphs[0].tensors[1].sparsity.dimMetadata[1]
    level.arrayIndices = schema().Uint8VectorT(np.array(indices, np.uint8))
    with pytest.raises(FormatError, match=r"sparsity of graph 0, tensor 1, byte \d+: the sparse value is inconsistent"):
        read_model(packed(model))


def test_tensors_that_share_a_packed_buffer_are_unpacked_once():
    g = GraphBuilder()
    values = np.zeros(1 << 16, np.int8)
    for number in range(17):
        g.tensor(f"t{number}", (1 << number, 1 << (16 - number)), DType.INT2, data=values)
    data = write_model(g.finish([], []))
    first, *others = read_model(data).main.tensors
    assert len(data) < values.size
    assert all(np.shares_memory(first.data, other.data) for other in others)
