"""Maps of custom operators: what the standard reader makes of ours, and ours of any bytes."""

from __future__ import annotations

import pytest
from flatbuffers import flexbuffers
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.flexbuffer import encode_map, read_map

_KEYS = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=20)
_VALUES = st.integers(0, 2**32 - 1) | st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(st.dictionaries(_KEYS, _VALUES, max_size=30))
def test_the_standard_reader_has_what_was_written(values: dict[str, int | str]) -> None:
    made = encode_map(values)
    assert flexbuffers.Loads(made) == values and read_map(made) == values
    assert encode_map(dict(reversed(values.items()))) == made


def test_other_makers_maps_are_read() -> None:
    made = flexbuffers.Dumps({"on": True, "score": 0.5, "least": -4, "none": None, "list": [1], "long": "a" * 300})
    found = read_map(bytes(made))
    assert found.pop("long") == "a" * 200
    assert found == {"on": True, "score": 0.5, "least": -4, "none": "none", "list": "a list or map"}
    assert read_map(b"subgraph\0\x0csubgraph_009\0\x01\x18\x01\x01\x01\x12\x14\x02$\x01") == {
        "subgraph": "subgraph_009"
    }


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"{}", bytes(flexbuffers.Dumps([1, 2])), bytes(flexbuffers.Dumps("text"))]
)
def test_what_is_no_map_is_empty(data: bytes) -> None:
    assert read_map(data) == {}


@given(st.data())
def test_damaged_maps_are_read_or_empty(data: st.DataObject) -> None:
    made = bytearray(encode_map({"target": "imxrt700", "calls": 8, "weights_bytes": 1 << 20}))
    for _ in range(data.draw(st.integers(1, 4))):
        made[data.draw(st.integers(0, len(made) - 1))] = data.draw(st.integers(0, 255))
    found = read_map(bytes(made))
    assert len(found) <= len(made)
