"""Compares everything in two models except computation: inputs, outputs, signatures, metadata, names, called graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from openneutron.certify.control import describe_graph
from openneutron.certify.read.litert import Graph, Model, Signature
from openneutron.certify.refused import Refused


def check_same_model(ours: Model, theirs: Model) -> None:
    """Refuse a compiled model whose shapes, names or descriptions differ from its source, or that has unused parts."""
    if ours.spare:
        raise Refused(f"it has {ours.spare}")
    _check_graph(ours.graphs[0], theirs.graphs[0])
    for what in ("description", "metadata"):
        if getattr(ours, what) != getattr(theirs, what):
            raise Refused(f"its {what} is not the source's")
    places = _match_graphs(ours.graphs, theirs.graphs)
    _check_signatures(ours, theirs, places)
    open_shapes = {(t.name, t.shape, t.open_shape) for graph in theirs.graphs for t in graph.tensors}
    axes = {(t.name, t.axis) for graph in theirs.graphs for t in graph.tensors}
    for graph in ours.graphs:
        for tensor in graph.tensors:
            # A compiled model may fix a size that the source leaves open; the proof holds for that size.
            if tensor.open_shape and (tensor.name, tensor.shape, tensor.open_shape) not in open_shapes:
                raise Refused(f"tensor {tensor.name!r} has sizes open that the source has not")
            # Without a scale per channel it means nothing, but interpreters show it.
            if tensor.axis and len(tensor.scale) < 2 and (tensor.name, tensor.axis) not in axes:
                raise Refused(f"tensor {tensor.name!r} has another quantized dimension than in the source")
    _check_all_used(ours.graphs[0])


def _check_graph(ours: Graph, theirs: Graph) -> None:
    if ours.label != theirs.label:
        raise Refused(f"its graph is named {ours.label[0]!r}, the source's {theirs.label[0]!r}")
    for kind in ("inputs", "outputs"):
        a, b = ([graph.tensors[one] for one in getattr(graph, kind)] for graph in (ours, theirs))
        if len(a) != len(b):
            raise Refused(f"it has {len(a)} {kind}, the source {len(b)}")
        for at, (one, other) in enumerate(zip(a, b, strict=True)):
            if one.form != other.form:
                raise Refused(f"{kind[:-1]} {at} ({one.name!r}) is not of the source's type, shape and scale")
            if one.name != other.name:
                raise Refused(f"{kind[:-1]} {at} is named {one.name!r}, the source's {other.name!r}")


def _match_graphs(ours: Sequence[Graph], theirs: Sequence[Graph]) -> list[int]:
    """Return, for each compiled graph, the number of the equal source graph.

    The compiled model may omit graphs that nothing calls any more; the others keep their order.
    """
    places = [0]
    for number in range(1, len(ours)):
        wanted = describe_graph(ours, number)
        found = next((at for at in range(places[-1] + 1, len(theirs)) if describe_graph(theirs, at) == wanted), None)
        if found is None:
            raise Refused(f"graph {number} is none of the source's, in their order")
        places.append(found)
    return places


def _check_signatures(ours: Model, theirs: Model, places: list[int]) -> None:
    found = [_plain(one, ours.graphs, places.__getitem__) for one in ours.signatures]
    wanted = [_plain(one, theirs.graphs, lambda number: number) for one in theirs.signatures]
    if len(found) != len(wanted):
        raise Refused(f"it has {len(found)} signatures, the source {len(wanted)}")
    for one, a, b in zip(ours.signatures, found, wanted, strict=True):
        if a != b:
            raise Refused(f"signature {one.key!r} is not the source's", one.at)


def _plain(signature: Signature, graphs: Sequence[Graph], place: Callable[[int], int]) -> tuple[object, ...]:
    """Return a signature with positions among inputs and outputs instead of tensor numbers."""

    def named_positions(pairs: tuple[tuple[bytes, int], ...], border: tuple[int, ...]) -> tuple[object, ...]:
        return tuple((name, tuple(at for at, one in enumerate(border) if one == index)) for name, index in pairs)

    graph = graphs[signature.graph]
    sides = named_positions(signature.inputs, graph.inputs), named_positions(signature.outputs, graph.outputs)
    return signature.key, place(signature.graph), sides


def _check_all_used(graph: Graph) -> None:
    """Refuse a compiled graph with a tensor that no operator uses and that is neither input nor output."""
    used = {*graph.inputs, *graph.outputs}
    for op in graph.operators:
        used |= {*op.inputs, *op.outputs, *op.intermediates}
    for index, tensor in enumerate(graph.tensors):
        if index not in used:
            raise Refused(f"nothing uses tensor {tensor.name!r}")
