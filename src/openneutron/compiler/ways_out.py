"""LiteRT operators that no kernel serves: why, and what users can do about each.

Operators that only read integers, compare, or make shapes are not here: nothing is gained by moving them.
"""

from __future__ import annotations

_NO_INT8 = "LiteRT has it in float alone"
_TABLE = "from PyTorch and ONNX it becomes a table of INT8 values by itself"
# Operator → why it has no kernel, and the way out.
WAYS_OUT: dict[str, tuple[str, str]] = {
    "DEQUANTIZE": ("it makes float values", "convert the model with INT8 outputs, and float operators to INT8 ones"),
    "CAST": (
        "it changes the type of stored numbers without their scale",
        "use QUANTIZE between quantized types; cast inputs and outputs outside the model",
    ),
    "CONV_3D": (
        "the NPU convolves over two dimensions",
        "give the slices that a window reads to CONV_2D as channels; from PyTorch and ONNX this happens by itself",
    ),
    "CONV_3D_TRANSPOSE": (
        "the NPU convolves over two dimensions",
        "use one TRANSPOSE_CONV for each step of the depth's stride; from PyTorch and ONNX this happens by itself",
    ),
    "EMBEDDING_LOOKUP_SPARSE": ("it sums a varying number of rows", "look rows up with GATHER and sum them"),
    "NON_MAX_SUPPRESSION_V4": ("how much it computes depends on data", "end the NPU's part before it"),
    "NON_MAX_SUPPRESSION_V5": ("how much it computes depends on data", "end the NPU's part before it"),
    "CUSTOM:TFLite_Detection_PostProcess": ("how much it computes depends on data", "end the NPU's part before it"),
    "ONE_HOT": (
        "an index outside gives a row without a hot element, which no kernel does",
        "use GATHER with a constant identity matrix; what a FULLY_CONNECTED makes of a hot element is a row of its weights",
    ),
    "SELECT": (
        "its condition is boolean, the NPU computes in INT8",
        "multiply by a mask of 0 and 1, and add the other side times its complement",
    ),
    "SELECT_V2": (
        "its condition is boolean, the NPU computes in INT8",
        "multiply by a mask of 0 and 1, and add the other side times its complement",
    ),
    "SCATTER_ND": ("it writes single elements by coordinates", "use DYNAMIC_UPDATE_SLICE for a block of rows"),
    "TOPK_V2": (
        "it sorts",
        "use ARG_MAX and REDUCE_MAX for the best one; for more end the NPU's part before it",
    ),
    "REVERSE_V2": ("it moves elements backwards", "use GATHER with descending indices"),
    **dict.fromkeys(("SIN", "COS", "FLOOR", "CEIL", "ROUND", "SIGN"), (_NO_INT8, _TABLE)),
    "POW": (_NO_INT8, f"use MUL for squares and SQRT for roots; {_TABLE}"),
    "SQUARE": (_NO_INT8, "use MUL with both operands the same"),
    "L2_NORMALIZATION": (
        "it divides by a length that is computed at run time",
        "normalize in the application, or write it as MUL, SUM, RSQRT and MUL",
    ),
    "RFFT2D": (
        "it computes with complex numbers",
        "compute the spectrum in the application, or as FULLY_CONNECTED or CONV_2D with sines and cosines as weights, as from "
        "PyTorch and ONNX by itself",
    ),
    "CUMSUM": ("each element needs the one before", "use FULLY_CONNECTED with a triangular matrix of ones"),
}
