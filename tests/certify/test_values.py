"""Tags of a graph's tensors: constants are made once for each place in the file, unknown tensors are an error."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest

from openneutron.certify.read.litert import Graph
from openneutron.certify.tags import constant
from openneutron.certify.values import Values
from tests.certify.small import const, tensor


def test_constants_of_one_buffer_are_made_once() -> None:
    one = replace(const([1, 2]), at=40)
    values = Values(Graph([one, replace(one), replace(one, at=80)]))
    assert values[0] == constant(b"\x01\0\0\0\x02\0\0\0")
    assert values[1] is values[0] and values[2] is not values[0]


def test_what_nobody_made_is_not_known() -> None:
    values = Values(Graph([tensor((2,)), tensor((0, 3))]))
    assert not values.is_known(0) and values.is_known(1)
    assert values[1] == array("Q")
    with pytest.raises(KeyError):
        values[0]
    values[0] = constant(b"ab")
    assert values.is_known(0)
