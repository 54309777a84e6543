"""Take a quantized model's own scales away, so that it can be quantized anew with calibration data.

Before:  y = DequantizeLinear(QuantizeLinear(x));  w = DequantizeLinear(weights)
After:   y = Identity(x);                          w = weights as float numbers

onnxruntime leaves out a Relu in front of a QuantizeLinear whose smallest value is 0: there y = Relu(x).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from openneutron.onnx.fuse.graph import Graph

# In front of a Relu that was left out. Behind others a smallest value of 0 says that they have no smaller one.
_LINEAR: Final = frozenset({"Add", "BatchNormalization", "Conv", "ConvTranspose", "Gemm", "MatMul", "Sub"})


def drop_quantization(graph: Any) -> int:
    """Rewrite a graph in place; returns how many values lost their scale. Operators on stored integers keep theirs.

    Example:
        >>> drop_quantization(model.graph)
        78
    """
    found = Graph(graph)
    count = 0
    for node in graph.node:
        stored = found.maker.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        if stored is None or stored.op_type != "QuantizeLinear":
            continue
        x = stored.input[0]
        node.op_type = "Relu" if _ends_at_zero(found, stored) else "Identity"
        node.domain = ""
        del node.input[:], node.attribute[:]
        node.input.append(x)
        count += 1
    read = {name for node in graph.node for name in node.input} | found.leaving
    kept = [node for node in graph.node if node.op_type != "QuantizeLinear" or node.output[0] in read]
    kept = [type(node).FromString(node.SerializeToString()) for node in kept]
    del graph.node[:]
    graph.node.extend(kept)
    return count


def _ends_at_zero(found: Graph, quantize: Any) -> bool:
    """Return whether the smallest value that it stores is 0, and what makes it may be less."""
    maker = found.maker.get(quantize.input[0])
    zero = found.constant(quantize.input[2]) if len(quantize.input) > 2 else np.uint8(0)
    if maker is None or maker.op_type not in _LINEAR or zero is None or zero.dtype.kind not in "iu":
        return False
    if any((data := found.constant(name)) is not None and data.size == 1 for name in maker.input[:2]):
        return False  # 1 + erf(x), for example
    return bool((zero == np.iinfo(zero.dtype).min).all())
