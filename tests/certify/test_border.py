"""All of two models that is no computation is compared: borders, names, signatures, metadata, graphs, spare tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from openneutron.certify.border import check_same_model
from openneutron.certify.read.litert import Graph, Model, Operator, Signature
from openneutron.certify.refused import Refused
from tests.certify.small import tensor


def model() -> Model:
    """One operator between an input and an output, with a signature, metadata and a description."""
    op = Operator(0, "RELU", (0,), (1,), {}, attributes=("RELU", ("", ""), (), (b"", 0, 1, (), -1)))
    graph = Graph([tensor((1, 4), name="x"), tensor((1, 4), name="y")], [op], (0,), (1,), (b"main", -1))
    signature = Signature(b"serving", 0, ((b"in", 0),), ((b"out", 1),))
    return Model([graph], b"a model", ((b"labels", b"cat"),), (signature,))


def of_graph(**changes: Any) -> Callable[[Model], Model]:
    return lambda one: replace(one, graphs=[replace(one.graphs[0], **changes)])


def of_tensor(at: int, **changes: Any) -> Callable[[Model], Model]:
    def change(one: Model) -> Model:
        tensors = list(one.graphs[0].tensors)
        tensors[at] = replace(tensors[at], **changes)
        return replace(one, graphs=[replace(one.graphs[0], tensors=tensors)])

    return change


def of_signature(**changes: Any) -> Callable[[Model], Model]:
    return lambda one: replace(one, signatures=(replace(one.signatures[0], **changes),))


LIES: dict[str, tuple[Callable[[Model], Model], str]] = {
    "spare": (lambda one: replace(one, spare="buffer 3, which nothing uses"), "it has buffer 3"),
    "description": (lambda one: replace(one, description=b""), "its description is not"),
    "metadata": (lambda one: replace(one, metadata=()), "its metadata is not"),
    "graph name": (of_graph(label=(b"other", -1)), "its graph is named"),
    "outputs": (of_graph(outputs=(1, 1)), "it has 2 outputs"),
    "output": (of_graph(outputs=(0,)), "output 0 is named 'x'"),
    "shape": (of_tensor(1, shape=(4, 1)), "output 0 .* is not of the source's type, shape and scale"),
    "scale": (of_tensor(0, scale=(0.25,)), "input 0 .* is not of the source's"),
    "variable": (of_tensor(1, variable=True), "output 0 .* is not of the source's"),
    "name": (of_tensor(0, name="z"), "input 0 is named 'z'"),
    "quantized dimension": (of_tensor(1, axis=1), "tensor 'y' has another quantized dimension"),
    "open size": (of_tensor(0, open_shape=(-1, 4)), "has sizes open"),
    "a tensor more": (
        lambda one: replace(one, graphs=[replace(one.graphs[0], tensors=[*one.graphs[0].tensors, tensor((1,), name="t")])]),
        "nothing uses tensor 't'"),
    "no signature": (lambda one: replace(one, signatures=()), "it has 0 signatures"),
    "signature key": (of_signature(key=b"other"), "signature b'other' is not"),
    "signature name": (of_signature(inputs=((b"other", 0),)), "is not the source's"),
    "signature tensor": (of_signature(outputs=((b"out", 0),)), "is not the source's"),
    "a graph more": (lambda one: replace(one, graphs=[*one.graphs, Graph()]), "graph 1 is none of the source's"),
}  # fmt: skip


def test_a_model_is_itself() -> None:
    check_same_model(model(), model())


def test_an_open_size_of_the_source_may_be_fixed() -> None:
    check_same_model(model(), of_tensor(0, open_shape=(-1, 4))(model()))


def test_a_quantized_dimension_of_the_source_may_stay() -> None:
    source = of_tensor(1, axis=1)(model())
    for compiled in (source, model()):
        check_same_model(compiled, source)


@pytest.mark.parametrize("lie", LIES)
def test_any_difference_is_refused(lie: str) -> None:
    change, why = LIES[lie]
    with pytest.raises(Refused, match=why):
        check_same_model(change(model()), model())
