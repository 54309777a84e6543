"""Custom operators of MediaPipe's models as the standard operators that compute the same.

Before:  y = Convolution2DTransposeBias(x, w, b)
After:   y = TRANSPOSE_CONV(shape of y, w, x, b)
"""

from __future__ import annotations

import struct

import numpy as np

from openneutron.litert.graph import DType, Graph, Operator, Tensor
from openneutron.litert.operator_options import make_options

_TRANSPOSED = "Convolution2DTransposeBias"
_FIELDS = struct.Struct("<iii")  # padding, width and height of the stride, as MediaPipe stores its parameters
_PADDINGS = {1: "SAME", 2: "VALID"}
_VERSION = 3  # the first one of TRANSPOSE_CONV with a bias


def use_standard_operators(graph: Graph) -> int:
    """Replace the custom operators that standard ones can stand for; returns how many.

    Example:
        >>> use_standard_operators(model.main)
        1
    """
    count = 0
    for at, op in enumerate(graph.operators):
        if op.custom_code == _TRANSPOSED and len(op.inputs) == 3 and len(op.custom_options) >= _FIELDS.size:
            padding, width, height = _FIELDS.unpack_from(op.custom_options)
            if padding in _PADDINGS and width > 0 and height > 0:
                graph.operators[at] = _transpose_convolution(graph, op, _PADDINGS[padding], width, height)
                count += 1
    return count


def _transpose_convolution(graph: Graph, op: Operator, padding: str, width: int, height: int) -> Operator:
    x, weights, bias = op.inputs
    (result,) = op.outputs
    shape = graph.tensors[result].shape
    sizes = np.array(shape, np.int32)
    sizes.flags.writeable = False
    graph.tensors.append(Tensor(f"{graph.tensors[result].name}/shape", (len(shape),), DType.INT32, data=sizes))
    options = make_options("TRANSPOSE_CONV", {"padding": padding, "strideW": width, "strideH": height})
    return Operator("TRANSPOSE_CONV", [len(graph.tensors) - 1, weights, x, bias], [result], options, version=_VERSION)
