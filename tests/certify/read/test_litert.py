"""The reader of LiteRT files: all of a file as data, and what makes no sense refused by its name."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from openneutron.certify.read.litert import exact, is_plain, read_model
from openneutron.certify.refused import Refused
from tests import tiny
from tests.mutants.container import add_descriptions, load, pack

FILE = add_descriptions(tiny.convnet())
Change = Callable[[Any], None]


def change_file(change: Change) -> bytes:
    model = load(FILE)
    change(model)
    return pack(model)


def test_a_model_is_read_whole() -> None:
    model = read_model(FILE)
    (graph,) = model.graphs
    assert graph.operators[0].code == "CONV_2D"
    assert model.description == b"a model" and dict(model.metadata)[b"labels"] == b"cat dog"
    assert [one.key for one in model.signatures] == [b"serving_default"] and model.spare == ""
    assert all(is_plain(op) for op in graph.operators)
    weights = graph.tensors[graph.operators[0].inputs[1]]
    assert weights.data is not None and FILE[weights.at : weights.at + weights.size] == bytes(weights.data)


LIES: dict[str, tuple[Change, str]] = {
    "schema": (lambda m: setattr(m, "version", 2), "schema version is not 3"),
    "buffer 0": (lambda m: setattr(m.buffers[0], "data", np.zeros(3, np.uint8)), "buffer 0, which stands for none"),
    "padding": (lambda m: setattr(m.subgraphs[0].operators[0].builtinOptions, "padding", 7), "with Padding 7"),
    "negative size": (
        lambda m: setattr(m.subgraphs[0].tensors[0], "shape", np.array([1, -2, 2, 2], np.int32)), "has shape"),
    "endless": (
        lambda m: setattr(m.subgraphs[0].tensors[0], "shape", np.array([1, 1 << 15, 1 << 15, 3], np.int32)),
        "the checker takes"),
    "open size": (
        lambda m: setattr(m.subgraphs[0].tensors[0], "shapeSignature", np.array([-1], np.int32)), "and signature"),
    "version": (lambda m: setattr(m.operatorCodes[0], "version", 100), "of version 100"),
    "data": (lambda m: setattr(m.buffers[m.subgraphs[0].tensors[m.subgraphs[0].operators[0].inputs[1]].buffer], "data",
                               np.zeros(3, np.uint8)), "3 bytes of data for"),
    "two places": (
        lambda m: m.buffers[m.subgraphs[0].tensors[m.subgraphs[0].operators[0].inputs[1]].buffer].__dict__.update(
            offset=64, size=16), "inside and behind the flatbuffer"),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_what_makes_no_sense_is_refused(lie: str) -> None:
    change, why = LIES[lie]
    with pytest.raises(Refused, match=why):
        read_model(change_file(change))


def test_what_nothing_uses_is_said() -> None:
    def spare(model: Any) -> None:
        model.buffers.append(type(model.buffers[0])())

    assert "which nothing uses" in read_model(change_file(spare)).spare


def test_an_archive_behind_a_source_is_allowed() -> None:
    labels = io.BytesIO()
    with zipfile.ZipFile(labels, "w") as archive:
        archive.writestr("labels.txt", "cat\ndog\n")
    read_model(FILE + labels.getvalue(), archive=True)
    with pytest.raises(Refused, match="bytes that belong to nothing"):
        read_model(FILE + labels.getvalue())
    with pytest.raises(Refused, match="bytes that belong to nothing"):
        read_model(FILE + b"x" + labels.getvalue()[1:], archive=True)


def test_numbers_of_other_bits_differ() -> None:
    nan = float("nan")
    assert exact(0.0) != exact(-0.0) and exact((nan, 1)) == exact((nan, 1))
