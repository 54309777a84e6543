"""An ONNX model as a LiteRT file with NeutronGraphs: for those whose every operator has a LiteRT form.

Inputs and outputs are INT8, with their scales in the file, and images are NHWC; with `use_neutron_for_format_conversion` the
NPU transposes and they are NCHW.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openneutron.program import Program


def as_litert_program(program: Program, options: Mapping[str, Any], where: str) -> Program:
    """The compiled program with LiteRT bytes; an error names the node that has no LiteRT form.

    The program must have been compiled with `dump_intermediates=True`.

    Example:
        >>> as_litert_program(program, {"target": "imxrt700"}, "model.onnx").save("model.tflite")
    """
    from openneutron.convert import convert
    from openneutron.errors import UnsupportedError
    from openneutron.options import LITERT, SCHEMA, Options

    left = [node for node in program.report.nodes if not node.delegated and node.code != "border"]
    if left:
        first = left[0]
        raise UnsupportedError(
            f"{first.source or first.name} cannot be written to LiteRT: {first.reason}", where=where,
            hint="write a .pte, which leaves it to ExecuTorch",
        )  # fmt: skip
    models = [name for name in program.intermediates if re.fullmatch(r"partition_\d+\.tflite", name)]
    if len(models) != 1:
        raise UnsupportedError(
            f"the model falls into {len(models)} parts for the NPU",
            where=where,
            hint="write a .pte, which holds several",
        )
    shared = {name: value for name, value in options.items() if LITERT in SCHEMA[name].fronts}
    result = convert(bytes(program.intermediates[models[0]]), Options(source=where, **shared))  # type: ignore[arg-type]
    return replace(program, data=result.model, kind="tflite")
