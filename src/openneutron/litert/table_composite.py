"""Any function of one INT8 value as a LiteRT operator: a composite that every LiteRT runtime can compute.

LiteRT has no INT8 form of most functions, and none that looks a value up in a given table. A STABLEHLO_COMPOSITE carries
a name for compilers that know it and a graph for runtimes that do not; this one's graph gathers from the table:

    y = GATHER(table, CAST(x, INT32) + 128)

One such graph serves every composite of a model: runtimes give it the shapes of the call.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from openneutron.litert.graph import DType, Graph, Operator, Tensor
from openneutron.litert.operator_options import make_options, schema
from openneutron.litert.versions import version_of

CODE: Final = "STABLEHLO_COMPOSITE"
NAME: Final = "openneutron.table"
ENTRIES: Final = 256  # one per INT8 value, the smallest first
_OFFSET: Final = 128  # position of the entry for 0


def table_options(graph: int, function: str = "") -> dict[str, Any]:
    """The options of a composite whose decomposition is graph number `graph` of the model.

    `function` goes into the attributes: the operators that the table was computed from, one a line.

    Example:
        >>> builder.op(CODE, [x, table], [y], **table_options(1))
    """
    return {
        "name": NAME,
        "decomposition_subgraph_index": graph,
        "composite_attributes": np.frombuffer(_attributes(function), np.uint8),
    }


def _attributes(function: str) -> bytes:
    """A FlexBuffers map: LiteRT demands one even where there is nothing to say."""
    from flatbuffers import flexbuffers

    return bytes(flexbuffers.Dumps({"function": function} if function else {}))


def is_table(options: Any) -> bool:
    """Whether an operator's options are those of a table; the name comes as bytes from a file."""
    name = getattr(options, "name", None)
    return (name.decode(errors="replace") if isinstance(name, bytes) else name) == NAME


def decomposition() -> Graph:
    """The graph behind the composite: inputs are the values and the table."""
    types = schema().TensorType
    tensors = [
        Tensor("values", (1,), DType.INT8),
        Tensor("table", (ENTRIES,), DType.INT8),
        Tensor("wide", (1,), DType.INT32),
        Tensor("offset", (), DType.INT32, data=np.array(_OFFSET, np.int32)),
        Tensor("index", (1,), DType.INT32),
        Tensor("result", (1,), DType.INT8),
    ]
    steps: list[tuple[str, list[int], int, dict[str, Any]]] = [
        ("CAST", [0], 2, {"in_data_type": types.INT8, "out_data_type": types.INT32}),
        ("ADD", [2, 3], 4, {"fused_activation_function": "NONE"}),
        ("GATHER", [1, 4], 5, {"axis": 0}),
    ]
    operators = [
        Operator(code, inputs, [output], options=make_options(code, options), version=version_of(code))
        for code, inputs, output, options in steps
    ]
    return Graph(NAME, tensors, operators, [0, 1], [5])
