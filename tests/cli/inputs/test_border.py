"""Borders: a NeutronGraph's tensors in the model's order, and what of the model it does not read or write."""

from __future__ import annotations

import openneutron
from openneutron.cli.inputs.border import borders_of_file
from tests import tiny
from tests.several_ends import several_ends


def border(*arguments, **keywords):
    (found,) = borders_of_file(openneutron.compile(several_ends(*arguments, **keywords)).tflite, "m.tflite")
    return found


def test_places_are_the_models() -> None:
    found = border((1, 0), ("flat", "sum", "first"))
    assert [found.inputs[found.input_places.index(at)].name for at in range(2)] == ["x1", "x0"]
    assert [found.outputs[found.output_places.index(at)].name for at in range(3)] == ["flat", "sum", "first"]
    assert found.notes == ()


def test_what_no_graph_writes_is_noted() -> None:
    found = border((0, 1), ("sum", "x1", "first", "sum"))
    assert [found.outputs[found.output_places.index(at)].name for at in range(2)] == ["sum", "first"]
    assert found.notes == (
        "output 1 of the model (x1) is its input 1, unchanged",
        "output 3 of the model (sum) is output 0 again",
    )


def test_parts_of_a_model_say_so() -> None:
    first, second = borders_of_file(openneutron.compile(tiny.sandwich()).tflite, "m.tflite")
    assert any("is not written by this NeutronGraph" in note for note in first.notes)
    assert any("is not read by this NeutronGraph" in note for note in second.notes)
