from __future__ import annotations

import json

import pytest

from openneutron.errors import BoardError
from openneutron.modelrunner.tflm_json import describe, parse_model, parse_run
from tests.modelrunner.fakes import model_json


@pytest.mark.parametrize(("generation", "indexed"), [("new", True), ("old", False), ("mixed", True)])
def test_every_generation_gives_microseconds(generation: str, indexed: bool) -> None:
    found = describe(model_json(8, 100, generation), "port")
    assert [one.microseconds for one in found.model.layers] == [50.0, 25.0]
    assert (found.model.microseconds, found.indexed) == (75.0, indexed)


def test_times_of_the_first_release_may_lie_in_the_tensor() -> None:
    raw = {
        "timing": 2_000,
        "inputs": [{"datatype": "INT8", "shape": [1]}],
        "layers": [{"type": "ADD", "tensor": {"timing": 2_000}}],
    }
    assert parse_model(json.dumps(raw), "port").layers[0].microseconds == 2.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": 3}, "layers is no list of objects"),
        ({"inputs": [3]}, "inputs is no list of objects"),
        ({"timing": "soon"}, "timing is 'soon'"),
        ({"timing": -1}, "timing is -1"),
        ({"outputs": [{"shape": [-1]}]}, "a shape is"),
        ({"outputs": [{"shape": "4"}]}, "a shape is"),
    ],
)
def test_nonsense_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(BoardError) as error:
        parse_model(json.dumps({"timing": 1} | change), "port")
    assert message in str(error.value)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(BoardError, match="no result"):
        parse_run("[" * 100_000, "port")


def test_types_that_numpy_lacks_keep_their_bytes() -> None:
    raw = {"outputs": [{"name": "y", "datatype": "INT4", "shape": [3], "data": "AAA="}], "timing": 1}
    assert parse_run(json.dumps(raw), "port")[0][0].data == b"\0\0"
