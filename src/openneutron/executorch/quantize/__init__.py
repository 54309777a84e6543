"""Static INT8 and 16x8 quantization in torchao's PT2E flow. Needs torch and torchao, no SDK and no native library.

How an operator is annotated stands in its file under `executorch/lower/ops/`, beside how it is lowered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openneutron.executorch.quantize.precision import Precision, int8, int16

if TYPE_CHECKING:
    from openneutron.executorch.quantize.quantizer import NeutronQuantizer

__all__ = ["NeutronQuantizer", "Precision", "int8", "int16"]


def __getattr__(name: str) -> Any:
    if name != "NeutronQuantizer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from openneutron.executorch.quantize.quantizer import NeutronQuantizer

    return NeutronQuantizer
