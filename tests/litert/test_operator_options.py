import subprocess
import sys

import pytest

from openneutron.errors import FormatError, OptionError
from openneutron.litert import operator_options
from openneutron.litert.light_options import options_class


@pytest.mark.parametrize(
    ("code", "table"),
    [
        ("CONV_2D", "Conv2DOptionsT"),
        ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptionsT"),
        ("AVERAGE_POOL_2D", "Pool2DOptionsT"),
        ("REDUCE_MAX", "ReducerOptionsT"),
        ("MINIMUM", "MaximumMinimumOptionsT"),
        ("BATCH_MATMUL", "BatchMatMulOptionsT"),
        ("SPACE_TO_BATCH_ND", "SpaceToBatchNDOptionsT"),
        ("TRANSPOSE_CONV", "TransposeConvOptionsT"),
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTMOptionsT"),
        ("STABLEHLO_COMPOSITE", "StableHLOCompositeOptionsT"),
        ("PADV2", "PadV2OptionsT"),
        ("L2_NORMALIZATION", "L2NormOptionsT"),
    ],
)
def test_table_of_an_operator(code, table):
    assert operator_options.options_of(code).__name__ == table


@pytest.mark.parametrize("code", ["RELU", "LOGISTIC", "TANH", "PRELU", "CUSTOM", "ELU"])
def test_operators_without_options(code):
    assert operator_options.options_of(code) is None
    assert operator_options.make_options(code, {}) is None


def test_every_table_belongs_to_an_operator():
    used = {operator_options.options_of(code) for code in operator_options.operator_names().values()}
    all_tables = {options_class(name) for union in operator_options.options_unions() for name in union.values()}
    assert all_tables <= used


def test_fields_by_either_spelling_and_enumerations_by_name():
    made = operator_options.make_options("CONV_2D", {"padding": "VALID", "stride_w": 2, "dilationHFactor": 3})
    assert (made.padding, made.strideW, made.dilationHFactor) == (1, 2, 3)
    assert operator_options.make_options("MIRROR_PAD", {"mode": "SYMMETRIC"}).mode == 1


@pytest.mark.parametrize(
    ("code", "fields", "message"),
    [
        ("CONV_2D", {"stride": 2}, "CONV_2D has no option 'stride'"),
        ("CONV_2D", {"padding": "HALF"}, "padding of CONV_2D is 'HALF'"),
        ("RELU", {"alpha": 1}, "RELU has no options, but alpha was given"),
        ("CONV2D", {}, "'CONV2D' is not a LiteRT operator"),
    ],
)
def test_wrong_options_are_refused(code, fields, message):
    with pytest.raises(OptionError, match=message):
        operator_options.make_options(code, fields)


def test_names_of_enumerations():
    assert [operator_options.activation_name(value) for value in range(4)] == ["NONE", "RELU", "RELU_N1_TO_1", "RELU6"]
    assert [operator_options.padding_name(value) for value in range(2)] == ["SAME", "VALID"]
    assert operator_options.mirror_pad_name(0) == "REFLECT"
    with pytest.raises(FormatError, match="fused activation 77 does not exist"):
        operator_options.activation_name(77)


def test_importing_the_room_is_light():
    heavy = "'torch' in sys.modules or any('schema_py_generated' in name for name in sys.modules)"
    code = f"import openneutron.litert, sys; sys.exit({heavy})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
