"""The border of a NeutronGraph: which tensors of the model it reads and writes, sorted as the model has them.

Example:
    >>> borders_of_file(Path("out.tflite").read_bytes(), "out.tflite")[0].output_places
    (1, 0)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openneutron.litert.graph import Graph, Tensor
from openneutron.litert.read import read_model
from openneutron.microcode.container import container_of
from openneutron.microcode.graph_op import BLOCKS, is_graph_op


@dataclass(frozen=True)
class GraphBorder:
    """Tensors in the order of the microcode, and for each its place among them in the order of the model.

    Tensors that are no input or output of the model itself come behind those that are, as the operator lists them. `notes`
    name inputs and outputs of the model that are none of this NeutronGraph.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    input_places: tuple[int, ...]
    output_places: tuple[int, ...]
    notes: tuple[str, ...]


def borders_of_file(data: bytes, where: str) -> list[GraphBorder]:
    """The border of every NeutronGraph of a LiteRT file, in execution order."""
    graph = read_model(data, source=where).main
    found: list[GraphBorder] = []
    for position, op in enumerate(graph.operators):
        if is_graph_op(op):
            container = container_of(graph, op, where=f"{where}, operator {position}")
            reads, writes = op.inputs[: -len(BLOCKS)], op.outputs[: container.outputs]
            found.append(
                GraphBorder(
                    tuple(graph.tensors[index] for index in reads),
                    tuple(graph.tensors[index] for index in writes),
                    _places(reads, graph.inputs),
                    _places(writes, graph.outputs),
                    tuple(_notes(graph, reads, writes)),
                )
            )
    return found


def _places(tensors: Sequence[int], model: Sequence[int]) -> tuple[int, ...]:
    """The place of each tensor when they are sorted by where the model first names them."""
    order = sorted(range(len(tensors)), key=lambda at: model.index(tensors[at]) if tensors[at] in model else len(model))
    return tuple(order.index(at) for at in range(len(tensors)))


def _notes(graph: Graph, reads: Sequence[int], writes: Sequence[int]) -> Iterator[str]:
    for position, index in enumerate(graph.inputs):
        if index not in reads:
            yield f"input {position} of the model ({graph.tensors[index].name}) is not read by this NeutronGraph"
    for position, index in enumerate(graph.outputs):
        first = graph.outputs.index(index)
        said = f"output {position} of the model ({graph.tensors[index].name}) is"
        if first != position:
            yield f"{said} output {first} again"
        elif index in graph.inputs:
            yield f"{said} its input {graph.inputs.index(index)}, unchanged"
        elif graph.tensors[index].is_constant:
            yield f"{said} a constant"
        elif index not in writes:
            yield f"{said} not written by this NeutronGraph"
