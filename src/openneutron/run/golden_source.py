"""What an operator's values are compared with: LiteRT's reference kernel, or a named exception and its reason.

Example:
    >>> golden_source(graph, graph.operators[3]).name
    "LiteRT's default kernel"
"""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.litert.graph import DType, Graph, Operator
from openneutron.run.forms import form_of

# Builtins that LiteRT does not register among its reference kernels; their only kernel is the definition.
WITHOUT_REFERENCE = frozenset(
    {"CEIL", "ELU", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE", "ROUND", "SEGMENT_SUM"}
)
_UNREGISTERED = "the reference kernels do not register it"
_SUM_OF_BYTES = "the reference kernel of SUM reads INT8 as unsigned bytes"


@dataclass(frozen=True)
class GoldenSource:
    """Who computes the golden values: `engine` is reference, default or form; `why` is empty for the reference kernel."""

    engine: str
    why: str = ""

    @property
    def name(self) -> str:
        """The source in words."""
        return _NAMES[self.engine]

    @property
    def exception(self) -> str:
        """One clause for people, empty where LiteRT's reference kernel is the definition."""
        return f"{self.name}: {self.why}" if self.why else ""


_NAMES = {
    "reference": "LiteRT's reference kernel",
    "default": "LiteRT's default kernel",
    "form": "docs/numerics.md, and LiteRT's reference kernel where that is defined",
}
REFERENCE = GoldenSource("reference")


def golden_source(graph: Graph, op: Operator) -> GoldenSource:
    """Where the golden values of an operator come from."""
    form = form_of(graph, op)
    if form is not None:
        return GoldenSource("form", form.why)
    if op.code in WITHOUT_REFERENCE:
        return GoldenSource("default", f"{op.code}: {_UNREGISTERED}")
    if op.code == "SUM" and op.inputs and op.inputs[0] >= 0 and graph.tensors[op.inputs[0]].dtype is DType.INT8:
        return GoldenSource("default", _SUM_OF_BYTES)
    return REFERENCE
