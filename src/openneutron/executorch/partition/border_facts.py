"""Scale and zero point of a program's INT8 inputs and outputs: as constant methods, and for its example inputs.

Example:
    >>> border_constants(borders, inputs=1)["forward_input0_scale"]
    0.0078125
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from openneutron.executorch.partition.passes.remove_border_quantize import Border

# The names that ExecuTorch's own pass for quantized inputs and outputs gives them.
SCALE: Final = "forward_{end}{at}_scale"
ZERO_POINT: Final = "forward_{end}{at}_zp"


def border_constants(borders: Sequence[Border], inputs: int) -> dict[str, float | int]:
    """Return the constant methods of a program whose first `inputs` borders are its inputs: two for each INT8 end."""
    found: dict[str, float | int] = {}
    for end, ends in (("input", borders[:inputs]), ("output", borders[inputs:])):
        for at, border in enumerate(ends):
            if not border.reason:
                found[SCALE.format(end=end, at=at)] = border.scale
                found[ZERO_POINT.format(end=end, at=at)] = border.zero_point
    return found


def quantized_inputs(borders: Sequence[Border], inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return float inputs as the program takes them: INT8 where its border quantizes nothing."""
    ends = [*borders[: len(inputs)], *[Border("", reason="as it is")] * (len(inputs) - len(borders))]
    return tuple(one if end.reason else _int8(one, end) for one, end in zip(inputs, ends, strict=True))


def _int8(value: Any, border: Border) -> torch.Tensor:
    found = torch.round(torch.as_tensor(value) / border.scale) + border.zero_point
    return found.clamp(-128, 127).to(torch.int8)
