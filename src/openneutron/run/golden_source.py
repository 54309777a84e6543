"""Determine what an operator's values are compared with: LiteRT's reference kernel, or an exception with a reason.

Example:
    >>> golden_source(graph, graph.operators[3]).name
    "LiteRT's default kernel"
"""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.litert.graph import DType, Graph, Operator
from openneutron.run.reference_overrides import find_override

# Builtins that LiteRT does not register among its reference kernels; their only kernel is the definition.
WITHOUT_REFERENCE = frozenset(
    {"CEIL", "ELU", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE", "ROUND", "SEGMENT_SUM"}
)
_UNREGISTERED = "the reference kernels do not register it"
# Both types go to the kernel of unsigned bytes: tests/run/test_golden_source.py compares both kernels with exact sums.
_SUM_OF_BYTES = {
    DType.INT8: "the reference kernel of SUM reads INT8 as unsigned bytes",
    DType.INT16: "the reference kernel of SUM reads INT16 as unsigned bytes",
}


@dataclass(frozen=True)
class GoldenSource:
    """What computes the golden values: `engine` is reference, default or override; `why` is empty for reference."""

    engine: str
    why: str = ""

    @property
    def name(self) -> str:
        """The source in words."""
        return _NAMES[self.engine]

    @property
    def exception(self) -> str:
        """Return the reason of the exception as one clause, "" for LiteRT's reference kernel."""
        return f"{self.name}: {self.why}" if self.why else ""


_NAMES = {
    "reference": "LiteRT's reference kernel",
    "default": "LiteRT's default kernel",
    "override": "docs/numerics.md, and LiteRT's reference kernel where that is defined",
}
REFERENCE = GoldenSource("reference")


def golden_source(graph: Graph, op: Operator) -> GoldenSource:
    """Return the source of an operator's golden values."""
    override = find_override(graph, op)
    if override is not None:
        return GoldenSource("override", override.why)
    if op.code in WITHOUT_REFERENCE:
        return GoldenSource("default", f"{op.code}: {_UNREGISTERED}")
    if op.code == "SUM" and op.inputs and op.inputs[0] >= 0 and graph.tensors[op.inputs[0]].dtype in _SUM_OF_BYTES:
        return GoldenSource("default", _SUM_OF_BYTES[graph.tensors[op.inputs[0]].dtype])
    return REFERENCE
