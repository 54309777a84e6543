"""How many inputs LiteRT takes for each operator that a rule models.

LiteRT refuses an operator with another number. Rules read the inputs that they need, so they would not notice one more.
"""

from __future__ import annotations

from typing import Final

from openneutron.certify.read.litert import Operator

_ANY: Final = range(1, 1 << 31)
_COUNTS: Final[dict[range, str]] = {
    range(1, 2): """
        ABS AVERAGE_POOL_2D CAST DEPTH_TO_SPACE ELU EXP GELU HARD_SWISH LEAKY_RELU LOG LOGICAL_NOT LOGISTIC MAX_POOL_2D NEG
        QUANTIZE RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RSQRT SHAPE SOFTMAX SPACE_TO_DEPTH SQRT SQUEEZE TANH UNPACK ZEROS_LIKE
    """,
    range(1, 3): "RESHAPE",
    range(2, 3): """
        ADD ARG_MAX ARG_MIN BATCH_MATMUL BROADCAST_TO DIV EMBEDDING_LOOKUP EQUAL EXPAND_DIMS FILL FLOOR_DIV FLOOR_MOD
        GATHER GATHER_ND GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_OR MAXIMUM MEAN MINIMUM MIRROR_PAD MUL
        NOT_EQUAL PAD PRELU REDUCE_MAX REDUCE_MIN RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SPLIT SQUARED_DIFFERENCE SUB SUM TILE
        TRANSPOSE
    """,
    range(2, 4): "CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED",
    range(3, 4): "BATCH_TO_SPACE_ND DYNAMIC_UPDATE_SLICE PADV2 SLICE SPACE_TO_BATCH_ND SPLIT_V",
    range(3, 5): "TRANSPOSE_CONV",
    range(4, 5): "STRIDED_SLICE",
    range(5, 6): "SVDF",
    range(20, 25): "UNIDIRECTIONAL_SEQUENCE_LSTM",
    _ANY: "CONCATENATION PACK STABLEHLO_COMPOSITE",
}
INPUTS: Final[dict[str, range]] = {code: counts for counts, codes in _COUNTS.items() for code in codes.split()}


def takes_inputs(op: Operator) -> bool:
    """Return whether LiteRT takes this number of inputs; False for an operator that no rule models."""
    return len(op.inputs) in INPUTS.get(op.code, ())
