"""An input or output of a file, as `inspect` shows it and `run` fills it."""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.litert.graph import Tensor


@dataclass(frozen=True)
class TensorInfo:
    """One input or output; `order` is "channels last" where a `.pte` wants that, `quantization` the scale it has."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    quantization: str = ""
    order: str = ""


def describe_encoding(scale: float, zero_point: int) -> str:
    """Return a scale and a zero point in words."""
    return f"scale {scale:g}, zero point {zero_point}"


def tensor_info(tensor: Tensor) -> TensorInfo:
    """A LiteRT tensor as `inspect` shows it."""
    quantization = ""
    if tensor.quantization is not None and len(tensor.quantization.scale) == 1:
        quantization = describe_encoding(*tensor.quantization.scalar)
    return TensorInfo(tensor.name, str(tensor.dtype), tensor.shape, quantization)
