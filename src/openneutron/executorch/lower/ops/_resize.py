"""Sizes of resized images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openneutron.executorch.lower.ops._window import NHWC
from openneutron.executorch.lower.values import Value
from openneutron.litert.graph import DType
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from openneutron.executorch.lower.call import Call


@limit("the input must be an image [N, C, H, W]")
def is_batch_of_images(call: Call) -> Verdict:
    """LiteRT resizes only height and width of four dimensions."""
    rank = call.value(image_name(call)).rank
    return OK if rank == 4 else no(f"it has {rank} dimensions")


def image_name(call: Call) -> str:
    """Return the schema's name of the image argument."""
    return "input" if "input" in call.arguments else "self"


def scales(call: Call) -> list[float]:
    """Return input pixels per output pixel, as PyTorch computes them for height and width."""
    x = call.value(image_name(call))
    given = call.arguments.get("scale_factors") or [call.arguments.get("scales_h"), call.arguments.get("scales_w")]
    sizes = zip(given, x.shape[2:], call.shape[2:], strict=True)
    return [size / out if factor is None else 1.0 / factor for factor, size, out in sizes]


def resize(call: Call, code: str, **options: Any) -> Value:
    """Emit a resize in NHWC; the result keeps the input's parameters."""
    x = call.activation(image_name(call))
    size = call.constant("size", list(call.shape[2:]), DType.INT32)
    value, made = call.result(NHWC, x.quantization)
    call.emit(code, [call.tensor(x, NHWC), size], [made], **options)
    return value
