"""L0: the typed LiteRT graph, its bounds-checked reader and its writer.

Neither torch nor, until something is read or written, the schema is imported.
"""

from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType, Graph, Metadata, Model, Operator, Quantization, Signature, Tensor
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model

__all__ = [
    "DType",
    "Graph",
    "GraphBuilder",
    "Metadata",
    "Model",
    "Operator",
    "Quantization",
    "Signature",
    "Tensor",
    "read_model",
    "write_model",
]
