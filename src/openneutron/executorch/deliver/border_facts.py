"""Scale and zero point of a program's INT8 inputs and outputs: as constant methods, and for its example inputs.

Example:
    >>> border_constants(borders, inputs=1)["get_input_scales"]
    [0.0078125]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from openneutron.executorch.partition.passes.remove_border_quantize import Border

SCALES: Final = ("get_input_scales", "get_output_scales")
ZERO_POINTS: Final = ("get_input_zero_points", "get_output_zero_points")
NOT_QUANTIZED: Final = 0.0  # the scale of an end that keeps its type


def border_constants(borders: Sequence[Border], inputs: int) -> dict[str, Any]:
    """Return the constant methods of a program whose first `inputs` borders are its inputs; {} if it has no INT8 ends.

    Each has one entry per input or output; an end that keeps its type has scale 0.
    """
    found: dict[str, Any] = {}
    if all(border.reason for border in borders):
        return found
    for at, ends in enumerate((borders[:inputs], borders[inputs:])):
        if ends:
            found[SCALES[at]] = [NOT_QUANTIZED if one.reason else one.scale for one in ends]
            found[ZERO_POINTS[at]] = [0 if one.reason else one.zero_point for one in ends]
    return found


def quantized_inputs(borders: Sequence[Border], inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return float inputs as the program takes them: INT8 where its border quantizes nothing."""
    ends = [*borders[: len(inputs)], *[Border("", reason="as it is")] * (len(inputs) - len(borders))]
    return tuple(one if end.reason else _int8(one, end) for one, end in zip(inputs, ends, strict=True))


def _int8(value: Any, border: Border) -> torch.Tensor:
    found = torch.round(torch.as_tensor(value) / border.scale) + border.zero_point
    return found.clamp(-128, 127).to(torch.int8)
