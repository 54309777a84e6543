"""Functions of one byte as tables of 256 entries, and functions with INT16 on a side as blocks of their own."""

from __future__ import annotations

import math
from typing import Any

import pytest

from openneutron.certify.operators.unary import table_of
from openneutron.certify.tags import constant, value_of
from openneutron.certify.world import World
from tests.certify.small import apply_rule, const, given, tensor

EVERY = const(bytes(range(256)), "INT8", (256,), scale=0.25, zero=-10)


def values(code: str, scale: float, zero: int, **options: Any) -> dict[int, int]:
    """Result by stored value, for all 256 of them."""
    made = apply_rule(code, [EVERY], tensor((256,), scale=scale, zero=zero), **options)
    data = value_of(made[0]) if made else None
    assert data is not None

    def signed_value(byte: int) -> int:
        return byte - 256 if byte > 127 else byte

    return {signed_value(at): signed_value(one) for at, one in enumerate(data)}


@pytest.mark.parametrize(
    ("code", "function", "options"),
    [
        ("RELU", lambda x: max(x, 0.0), {}), ("RELU6", lambda x: min(max(x, 0.0), 6.0), {}), ("ABS", abs, {}),
        ("LEAKY_RELU", lambda x: x if x > 0 else 0.125 * x, {"Alpha": 0.125}), ("TANH", math.tanh, {}),
        ("LOGISTIC", lambda x: 1 / (1 + math.exp(-x)), {}), ("QUANTIZE", lambda x: x, {}),
        ("HARD_SWISH", lambda x: x * min(max(x + 3, 0.0), 6.0) / 6, {}),
    ],
    ids=lambda one: one if isinstance(one, str) else None,
)  # fmt: skip
def test_a_table_is_the_function_up_to_its_rounding(code: str, function: Any, options: dict[str, Any]) -> None:
    scale, zero = {"TANH": (1 / 128, 0), "LOGISTIC": (1 / 256, -128)}.get(code, (0.5, -20))
    for stored, made in values(code, scale, zero, **options).items():
        wanted = min(max(function(0.25 * (stored + 10)) / scale + zero, -128), 127)
        assert abs(made - wanted) <= 1.01, f"{code} of {stored}"


def test_a_table_is_indexed_by_the_stored_byte() -> None:
    table = table_of(lambda q: -q, "INT8", "INT8")
    assert table[1] == 255 and table[255] == 1 and table[128] == 127, "-128 is cut to 127"
    assert table_of(lambda q: q - 128, "UINT8", "INT8")[0] == 128


def test_functions_with_two_bytes_are_told_apart_by_their_values() -> None:
    world = World()
    x = tensor((8,), "INT16", 0.01)

    def rescale(scale: float) -> list[int]:
        made = apply_rule("QUANTIZE", [x], tensor((8,), "INT8", scale), world=world)
        assert made is not None
        return list(made[0])

    assert rescale(0.5) == rescale(0.5) != rescale(0.25)
    assert len(rescale(0.5)) == 8 and rescale(0.5) != list(given(world, 0, 8))


def test_two_rescalings_that_undo_each_other_are_nothing() -> None:
    world = World()
    there = apply_rule("QUANTIZE", [tensor((4,), "INT8", 0.5, 0)], tensor((4,), "UINT8", 0.5, 128), world=world)
    assert there is not None
    back = world.symbols.apply_table(there[0], bytes((one - 128) & 0xFF for one in range(256)))
    assert back == given(world, 0, 4)


def test_types_without_a_table_have_no_rule() -> None:
    assert apply_rule("TANH", [tensor((4,), "FLOAT32", 0)], tensor((4,), "FLOAT32", 0)) is None
    per_channel = tensor((4,), "INT8", (0.5, 0.5, 0.5, 0.5))
    assert apply_rule("RELU", [per_channel], tensor((4,))) is None


def test_a_function_of_a_constant_is_a_constant() -> None:
    made = apply_rule("RELU", [const(b"\x05\xfb", "INT8", scale=0.5)], tensor((2,)))
    assert made == [constant(b"\x05\x00")]
