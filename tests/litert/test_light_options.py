"""Options tables of our own are those of the schema: names, defaults, and bytes in both directions."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import flatbuffers
import numpy as np
import pytest

from openneutron.errors import FormatError
from openneutron.litert import light_options
from openneutron.litert.light_options import options_class
from openneutron.litert.operator_options import schema
from openneutron.litert.schema_tables import TABLES
from openneutron.litert.walker import Walker

_SAMPLES = {
    "Bool": True,
    "Int8": -3,
    "Uint8": 200,
    "Int32": -70000,
    "Uint32": 4000000000,
    "Int64": -(2**40),
    "Float32": 0.5,
}


def _filled(cls: type[Any], table: str, *, arrays: bool) -> Any:
    made = cls()
    for name, kind, _, default in TABLES[table][1]:
        value: Any = not default if kind == "Bool" and default is not None else _SAMPLES[kind]
        if default is None:
            value = np.array([value] * 3, light_options._DTYPES[kind]) if arrays else [value] * 3
        setattr(made, name, value)
    return made


def _packed(options: Any) -> bytes:
    builder = flatbuffers.Builder(64)
    builder.Finish(options.Pack(builder))
    return bytes(builder.Output())


def _plain(options: Any) -> dict[str, Any]:
    return {key: one.tolist() if isinstance(one, np.ndarray) else one for key, one in vars(options).items()}


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_the_schemas(table: str) -> None:
    ours, theirs = options_class(table), getattr(schema(), f"{table}T")
    assert ours.__name__ == theirs.__name__ and ours is not theirs
    assert list(vars(ours()).items()) == list(vars(theirs()).items())
    assert [type(value) for value in vars(ours()).values()] == [type(value) for value in vars(theirs()).values()]
    assert _packed(ours()) == _packed(theirs())
    for arrays in (False, True):
        data = _packed(_filled(theirs, table, arrays=arrays))
        assert _packed(_filled(ours, table, arrays=arrays)) == data
        root = Walker(data, "<bytes>").table(int.from_bytes(data[:4], "little"), "options")
        read, known = ours.read(root), theirs.InitFromPackedBuf(data)
        assert _plain(read) == _plain(known) and _packed(read) == _packed(known) == data
        assert [type(value) for value in vars(read).values()] == [type(value) for value in vars(known).values()]


def test_the_layout_is_current() -> None:
    from openneutron.litert.write_schema_tables import TARGET, render_schema_tables

    assert TARGET.read_text(encoding="utf-8") == render_schema_tables(), (
        "run python -m openneutron.litert.write_schema_tables"
    )


def test_a_vector_outside_the_file_is_refused() -> None:
    data = bytearray(_packed(_filled(options_class("ReshapeOptions"), "ReshapeOptions", arrays=True)))
    data[data.index(b"\x03\x00\x00\x00\x90\xee\xfe\xff")] = 200
    root = Walker(bytes(data), "<bytes>").table(int.from_bytes(data[:4], "little"), "options")
    with pytest.raises(FormatError, match="200 elements"):
        options_class("ReshapeOptions").read(root)


def test_objects_can_be_copied_and_pickled_and_know_their_fields() -> None:
    made = options_class("Conv2DOptions")(strideW=2)
    assert vars(copy.deepcopy(made)) == vars(pickle.loads(pickle.dumps(made))) == vars(made) and made.strideW == 2
    with pytest.raises(TypeError, match="stride"):
        options_class("Conv2DOptions")(stride=2)
    with pytest.raises(AttributeError):
        _ = light_options.Conv2DOptions
