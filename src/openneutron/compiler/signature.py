"""Signatures: shapes, types and quantization of one LiteRT operator, without data.

The partitioner lowers a PyTorch node to signatures and asks `kernels.check`; the compiler's legalize stage asks the same
function, so what one accepts the other compiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openneutron.litert.graph import DType, Graph, Operator, Quantization, Tensor
from openneutron.litert.operator_options import options_of


class TensorSignature(NamedTuple):
    """The properties of a tensor that limits check.

    `values` holds the data of integer constants that shape the result (axes, paddings, sizes) and of single constants
    (a divisor); weights and other data are known to be constant but not looked at. `magnitudes` are the absolute values of a
    constant of 32 or 64 bits in double, which bound what a bias adds to the sums of each channel.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    quantization: Quantization | None
    constant: bool
    values: npt.NDArray[Any] | None = None
    variable: bool = False  # keeps its contents from run to run
    magnitudes: npt.NDArray[np.float64] | None = None

    @property
    def scale(self) -> float:
        """Per-tensor scale; 0.0 when the tensor is not quantized."""
        return self.quantization.scale[0] if self.quantization and self.quantization.scale else 0.0

    @property
    def zero_point(self) -> int:
        """Per-tensor zero point; 0 when the tensor is not quantized."""
        return self.quantization.zero_point[0] if self.quantization and self.quantization.zero_point else 0


@dataclass(frozen=True)
class OpSignature:
    """One LiteRT operator: builtin name, tensors (None where optional and absent), the schema's options object."""

    code: str
    inputs: tuple[TensorSignature | None, ...]
    outputs: tuple[TensorSignature, ...]
    options: Any
    intermediates: tuple[TensorSignature, ...] = ()  # intermediate tensors of recurrent operators

    def input(self, index: int) -> TensorSignature | None:
        """Input `index`, or None when it is absent or not given at all."""
        return self.inputs[index] if index < len(self.inputs) else None


# Integer constants up to this many elements are shape arguments; larger ones are data (embedding tables, indices).
_SHAPE_ARGUMENT_ELEMENTS = 64


def of_tensor(tensor: Tensor) -> TensorSignature:
    """The signature of one tensor."""
    values = None
    integers = tensor.dtype in (DType.INT32, DType.INT64)
    most = _SHAPE_ARGUMENT_ELEMENTS if integers else 1
    if tensor.data is not None and not tensor.dtype.is_opaque and tensor.data.size <= most:
        values = np.asarray(tensor.data)
    return TensorSignature(
        tensor.name,
        tensor.shape,
        tensor.dtype,
        tensor.quantization,
        tensor.data is not None,
        values,
        tensor.is_variable,
        np.abs(tensor.data.astype(np.float64)).reshape(-1) if integers and tensor.data is not None else None,
    )


def default_options(code: str) -> Any:
    """Return an operator's options table with every field at the schema's default."""
    made = options_of(code)
    return None if made is None else made()


def of_operator(graph: Graph, op: Operator) -> OpSignature:
    """The signature of one operator of a graph."""
    return OpSignature(
        op.code if op.code != "CUSTOM" else f"CUSTOM:{op.custom_code}",
        tuple(of_tensor(graph.tensors[i]) if i >= 0 else None for i in op.inputs),
        tuple(of_tensor(graph.tensors[i]) for i in op.outputs),
        next((given for given in (op.options, op.options2) if given is not None), None) or default_options(op.code),
        tuple(of_tensor(graph.tensors[i]) for i in op.intermediates),
    )
