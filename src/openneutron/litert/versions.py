"""The operator version to write into a file.

LiteRT refuses an operator whose version its resolver does not register; a kernel does not compute differently by
version. So the right one is the lowest that covers every INT8 form we build (per channel, grouped, without bias,
rank above 4): the oldest runtimes still load it. It never exceeds what BUILTIN_REF of ai-edge-litert 2.3, the golden
reference, registers, which a test asks the interpreter itself.
"""

from __future__ import annotations

# INT8 forms only; every operator not listed is version 1. The comments say what asks for more than plain INT8.
_INT8_VERSIONS = {
    "ABS": 2,
    "ADD": 2,
    "ARG_MAX": 2,
    "ARG_MIN": 2,
    "AVERAGE_POOL_2D": 2,
    "BATCH_MATMUL": 2,
    "BATCH_TO_SPACE_ND": 3,  # rank 3
    "BROADCAST_TO": 3,
    "CAST": 3,
    "CONCATENATION": 2,
    "CONV_2D": 6,  # groups
    "DEPTHWISE_CONV_2D": 3,
    "DEQUANTIZE": 5,  # per channel
    "DIV": 2,  # broadcast above rank 4
    "EQUAL": 2,
    "EXP": 2,
    "FILL": 3,
    "FLOOR_DIV": 3,
    "FLOOR_MOD": 2,
    "FULLY_CONNECTED": 6,  # keep_num_dims, no bias
    "GATHER": 5,  # batch_dims
    "GELU": 2,
    "GREATER": 2,
    "GREATER_EQUAL": 2,
    "L2_NORMALIZATION": 2,
    "LEAKY_RELU": 2,
    "LESS": 2,
    "LESS_EQUAL": 2,
    "LOG": 2,
    "LOGISTIC": 2,
    "LOG_SOFTMAX": 2,
    "MAXIMUM": 3,  # broadcast above rank 4
    "MAX_POOL_2D": 2,
    "MEAN": 2,
    "MINIMUM": 3,  # broadcast above rank 4
    "MIRROR_PAD": 2,
    "MUL": 3,  # rescaling by 1 or more
    "NOT_EQUAL": 2,
    "PACK": 2,
    "PAD": 4,  # rank above 4
    "PADV2": 4,  # rank above 4
    "QUANTIZE": 3,  # per channel
    "REDUCE_MAX": 2,
    "REDUCE_MIN": 2,
    "REDUCE_PROD": 2,
    "RELU": 2,
    "RELU6": 2,
    "RESIZE_BILINEAR": 3,  # half_pixel_centers
    "RESIZE_NEAREST_NEIGHBOR": 3,  # half_pixel_centers, align_corners
    "REVERSE_V2": 3,
    "RSQRT": 2,
    "SELECT": 3,  # rank 5
    "SLICE": 5,  # rank above 4
    "SOFTMAX": 2,
    "SPACE_TO_BATCH_ND": 3,  # rank 3
    "SPACE_TO_DEPTH": 2,
    "SPLIT": 2,
    "SPLIT_V": 2,
    "SQRT": 2,
    "SQUARED_DIFFERENCE": 2,
    "STRIDED_SLICE": 4,  # rank above 4
    "SUB": 3,  # broadcast above rank 4
    "SUM": 2,
    "SVDF": 3,
    "TANH": 2,
    "TILE": 2,  # newer runtimes call INT8 version 3, BUILTIN_REF computes it at 2
    "TOPK_V2": 2,
    "TRANSPOSE": 6,  # rank above 5
    "TRANSPOSE_CONV": 4,  # fused activation, bias
    "UNIDIRECTIONAL_SEQUENCE_LSTM": 3,
    "UNPACK": 2,
}


def version_of(code: str) -> int:
    """The version to write for builtin operator `code`.

    Example:
        >>> version_of("CONV_2D"), version_of("RESHAPE")
        (6, 1)
    """
    return _INT8_VERSIONS.get(code, 1)
