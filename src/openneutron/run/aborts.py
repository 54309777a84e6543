"""Detect quantization parameters on which LiteRT's reference kernels abort the process (docs/numerics.md)."""

from __future__ import annotations

from openneutron.compiler.numbers.multipliers import f32
from openneutron.litert.graph import DType, Graph, Operator, Tensor

_BYTES = (DType.INT8, DType.UINT8)


def aborts(graph: Graph, op: Operator) -> str:
    """Return the reason why LiteRT would abort the process, "" when none is known.

    Example:
        >>> aborts(graph, graph.operators[3])
        'its output scale 1e-09 is too fine for inputs of 0.1'
    """
    tensors = [graph.tensors[t] for t in (*op.inputs[:2], *op.outputs[:1]) if t >= 0]
    if not op.outputs or not all(_per_tensor(tensor) for tensor in tensors):
        return ""
    scales = [tensor.quantization.scale[0] for tensor in tensors if tensor.quantization is not None]
    if op.code in ("ADD", "SUB", "SQUARED_DIFFERENCE") and len(scales) == 3:
        twice = f32(2 * max(scales[:2]))
        squared = op.code == "SQUARED_DIFFERENCE"
        factor = twice * twice / ((1 << 14) * scales[2]) if squared else twice / f32((1 << 20) * scales[2])
        if factor >= 1:
            return f"its output scale {scales[2]:g} is too fine for inputs of {max(scales[:2]):g}"
    return ""


def _per_tensor(tensor: Tensor) -> bool:
    return tensor.dtype in _BYTES and tensor.quantization is not None and len(tensor.quantization.scale) == 1
