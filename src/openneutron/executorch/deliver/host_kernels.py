"""Host kernels: whether the runtime has a kernel for every operator that a program leaves to the CPU.

ExecuTorch itself notices a missing kernel only when it loads the program on the device. Its package lists the kernels that
it can be built with in yaml files, so this can be checked at compile time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from torch.fx import Graph

from openneutron.errors import UnsupportedError
from openneutron.executorch.fx import operator_name, source_line, value_of
from openneutron.executorch.ways_out import VOLUMES, way_out
from openneutron.report.model import NodeVerdict

_LISTS: Final = (
    ("kernels", "portable", "functions.yaml"),
    ("kernels", "portable", "custom_ops.yaml"),
    ("kernels", "portable", "et_copy_ops.yaml"),
    ("kernels", "quantized", "quantized.yaml"),
)
# ExecuTorch's optimized kernels have it and the portable ones do not; the package carries no list of the former.
_OPTIMIZED: Final = frozenset({"aten::linear.out"})
_ENTRY = re.compile(r"^- (?:op|func): *([\w:.]+)", re.MULTILINE)
# Always there: scalars of the runtime itself, and operators of backends that bring their kernels along.
_BUILT_IN = ("executorch_prim::", "et_copy::", "cortex_m::")


@cache
def host_kernels() -> frozenset[str]:
    """Names of all operators with a kernel: "aten::add.out".

    Example:
        >>> "aten::avg_pool3d.out" in host_kernels()
        False
    """
    found: set[str] = set()
    for path in _LISTS:
        listed = files("executorch")
        for part in path:
            listed = listed / part
        if listed.is_file():
            found.update(_ENTRY.findall(listed.read_text(encoding="utf-8")))
    return frozenset(name if "::" in name else f"aten::{name}" for name in found) | _OPTIMIZED


def check_host_kernels(operators: Sequence[str], verdicts: Sequence[NodeVerdict]) -> None:
    """Refuse a program with an operator that no kernel runs; `operators` are named as in the program."""
    known = host_kernels()
    for name in operators:
        if name in known or name.startswith(_BUILT_IN):
            continue
        base = name.split("::")[-1].split(".")[0]
        node = next((v for v in verdicts if not v.delegated and v.operator.split(".")[1:2] == [base]), None)
        where = "" if node is None else f" ({node.name}{', ' + node.source if node.source else ''})"
        raise UnsupportedError(
            f"nothing can run aten.{base}{where}: it is left to the CPU, and ExecuTorch's runtime has no kernel {name}"
            + (f"; the NPU does not take it because {node.reason}" if node is not None and node.reason else ""),
            hint=way_out(f"aten.{base}").hint
            or "replace it, or end the model before it and compute it in the application",
        )


# ExecuTorch's kernel takes signals and images; the list of kernels does not say so.
_MOST_DIMENSIONS: Final = 4


def check_host_convolutions(graph: Graph) -> None:
    """Refuse a convolution that is left to the CPU and has more dimensions than ExecuTorch's kernel takes."""
    for node in graph.nodes:
        if operator_name(node) != "aten.convolution.default" or value_of(node).dim() <= _MOST_DIMENSIONS:
            continue
        line = source_line(node)
        raise UnsupportedError(
            f"nothing can run {node.name}{f' ({line})' if line else ''}: it is a convolution over "
            f"{value_of(node).dim() - 2} dimensions, and neither the NPU nor ExecuTorch's runtime has one",
            hint=VOLUMES.hint,
        )
