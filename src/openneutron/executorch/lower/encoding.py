"""Quantize and dequantize nodes as data, and the constants of an exported program."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.export import ExportedProgram
from torch.fx import Node

from openneutron.executorch.fx import PER_CHANNEL, arguments, operator_name, shape_of, value_of
from openneutron.litert.graph import DType, Quantization
from openneutron.verdict import Reason

DTYPES = {
    torch.int8: DType.INT8, torch.uint8: DType.UINT8, torch.int16: DType.INT16, torch.int32: DType.INT32,
    torch.int64: DType.INT64, torch.float32: DType.FLOAT32, torch.bool: DType.BOOL,
}  # fmt: skip

INDEX_TYPES = (torch.int32, torch.int64)  # of positions and tokens, which enter a partition as they are


class Rejected(Exception):
    """A node that cannot be lowered, and why; the partitioner turns it into a verdict."""

    def __init__(self, node: Node, reason: Reason) -> None:
        super().__init__(str(reason))
        self.node = node
        self.reason = reason


def reject(node: Node, code: str, message: str, hint: str = "") -> Rejected:
    """Return the exception to raise when `node` cannot be lowered."""
    return Rejected(node, Reason(code, message, node.name, hint))


@dataclass(frozen=True)
class Encoding:
    """How a tensor is stored: parameters, type and the range its values were clipped to."""

    quantization: Quantization
    dtype: DType
    low: int
    high: int


class Constants:
    """The constant inputs of a program.

    While partitioning, ExecuTorch hands out programs whose tensors have no data. Shapes suffice there for weights; small
    constants that decide something (scales of channels, scalars) are looked up in `known`, tensors by qualified name.
    """

    def __init__(self, program: ExportedProgram, known: Mapping[str, torch.Tensor] | None = None) -> None:
        signature = program.graph_signature
        names: dict[str, str] = {}
        names.update(signature.inputs_to_parameters)
        mutated = set(signature.buffers_to_mutate.values())
        names.update({name: fqn for name, fqn in signature.inputs_to_buffers.items() if fqn not in mutated})
        names.update(signature.inputs_to_lifted_tensor_constants)
        self._names = names
        self._states = {name: fqn for name, fqn in signature.inputs_to_buffers.items() if fqn in mutated}
        self._program = program
        self._known = known or {}
        self._stand_ins: Mapping[Node, Node] = {}

    def standing_for(self, given: Mapping[Node, Node]) -> Constants:
        """Return these constants for another graph, whose placeholders represent nodes of this program (`given`)."""
        made = copy(self)
        made._stand_ins = given
        return made

    def __contains__(self, node: Any) -> bool:
        node = self._stand_ins.get(node, node) if isinstance(node, Node) else None
        return node is not None and node.op == "placeholder" and node.name in self._names

    def find(self, node: Node) -> npt.NDArray[Any] | None:
        """Return the data of a constant, or None if the program has none."""
        return self._data(self._names[self._stand_ins.get(node, node).name])

    def _data(self, fqn: str) -> npt.NDArray[Any] | None:
        for source in (self._program.state_dict, self._program.constants, self._known):
            tensor = source.get(fqn)
            if isinstance(tensor, torch.Tensor) and not _is_fake(tensor):
                return np.asarray(tensor.detach().contiguous().cpu().numpy())
        return None

    def array(self, node: Node) -> npt.NDArray[Any]:
        """Return the data of a constant, or zeros of its shape if the program has none."""
        found = self.find(node)
        if found is not None:
            return found
        dtype = DTYPES.get(value_of(node).dtype, DType.FLOAT32)
        return np.zeros(shape_of(node), dtype.numpy)

    def known_first_contents(self, node: Node) -> npt.NDArray[Any] | None:
        """The first contents of a buffer that the program changes, None where they are not known."""
        return self._data(self._states[node.name])

    def first_contents(self, node: Node) -> npt.NDArray[Any]:
        """The first contents of a buffer that the program changes, zeros where they are not known."""
        found = self.known_first_contents(node)
        return np.zeros(shape_of(node), np.float32) if found is None else found

    def require(self, node: Node, reader: Node, what: str) -> npt.NDArray[Any]:
        """The data of a constant that must be known to decide about `reader`."""
        found = self.find(node)
        if found is None:
            raise reject(
                reader, "unknown_constant", f"the values of {what} ({node.name}) are not known while partitioning",
                "use to_edge_transform_and_lower, or give the partitioner post_quantization_state_dict",
            )  # fmt: skip
        return found


def _is_fake(tensor: torch.Tensor) -> bool:
    return hasattr(tensor, "fake_mode") or tensor.is_meta


def encoding_of(node: Node, constants: Constants) -> Encoding:
    """Return the parameters of a quantize or dequantize node."""
    given = arguments(node)
    dtype = DTYPES.get(given["dtype"])
    if dtype is None:
        raise reject(node, "quantized_dtype", f"{node.name} stores {given['dtype']}", "quantize to INT8")
    if operator_name(node) in PER_CHANNEL:
        if not all(given[key] in constants for key in ("scales", "zero_points")):
            raise reject(node, "dynamic_scales", f"the scales of {node.name} are computed at run time")
        scales = constants.require(given["scales"], node, "the scales").reshape(-1)
        zeros = constants.require(given["zero_points"], node, "the zero points").reshape(-1)
        rank = len(shape_of(given["input"]))
        axis = int(given["axis"]) % rank
        quantization = Quantization(_floats(scales), tuple(int(zero) for zero in zeros), axis if len(scales) > 1 else 0)
    else:
        quantization = Quantization(_floats([given["scale"]]), (int(given["zero_point"]),))
    if not all(np.isfinite(scale) and scale > 0 for scale in quantization.scale):
        raise reject(
            node, "bad_scale", f"{node.name} has a scale of {min(quantization.scale)}",
            "calibrate on real data without NaN or infinity",
        )  # fmt: skip
    return Encoding(quantization, dtype, int(given["quant_min"]), int(given["quant_max"]))


def _floats(scales: Any) -> tuple[float, ...]:
    return tuple(float(scale) for scale in np.asarray(scales, np.float32))
