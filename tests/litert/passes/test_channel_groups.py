"""Channels that must keep or share their unit, operator by operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from openneutron.litert import DType
from openneutron.litert.build import GraphBuilder
from openneutron.litert.passes.channel_groups import ChannelGroups, channel_groups, flattened_channels


def between(
    code: str, shape: tuple[int, ...], constants: tuple[Any, ...] = (), given: int = 1, **options: Any
) -> ChannelGroups:
    """An operator between two layers, the tensors `a` (and `b`) before it and `c` behind it."""
    g = GraphBuilder()
    eye = np.eye(4, dtype=np.float32)
    x = g.tensor("x", (2, 4), DType.FLOAT32)
    before = []
    for at, name in enumerate("ab"[:given]):
        before.append(g.tensor(name, (2, 4), DType.FLOAT32))
        g.op("FULLY_CONNECTED", [x, g.tensor(f"w{at}", (4, 4), DType.FLOAT32, data=eye.copy()), -1], [before[-1]])
    for at, data in enumerate(constants):
        before.append(g.tensor(f"k{at}", np.shape(data), DType(str(np.asarray(data).dtype)), data=data))
    c, y = g.tensor("c", shape, DType.FLOAT32), g.tensor("y", (shape[0], 1), DType.FLOAT32)
    g.op(code, before, [c], **options)
    rows = np.ones((1, shape[-1]), np.float32)
    g.op("FULLY_CONNECTED", [c, g.tensor("v", rows.shape, DType.FLOAT32, data=rows), -1], [y])
    return channel_groups(g.finish([x], [y]).main)


def of(groups: ChannelGroups, name: str) -> list[int]:
    return list(groups.of(next(at for at, one in enumerate(groups.graph.tensors) if one.name == name)))


CASES: dict[str, tuple[ChannelGroups, list[int]]] = {
    "channel by channel": (between("RELU", (2, 4)), [0, 1, 2, 3]),
    "a sum": (between("ADD", (2, 4), given=2), [0, 1, 2, 3]),
    "joined": (between("CONCATENATION", (2, 8), given=2, axis=-1), [0, 1, 2, 3, -2, -2, -2, -2]),
    "channels in front and behind": (
        between("PAD", (2, 6), (np.int32([[0, 0], [1, 1]]),)), [-2, 0, 1, 2, 3, -2]
    ),
    "two rows as one": (between("RESHAPE", (1, 8), (np.int32([1, 8]),)), [0, 1, 2, 3, 0, 1, 2, 3]),
    "times a constant": (between("MUL", (2, 4), (np.float32([1, 2, 3, 4]),)), [0, 1, 2, 3]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_channels_share_the_group_of_what_they_come_from(case: tuple[ChannelGroups, list[int]]) -> None:
    """Numbers are channels of `a`; -2 are others."""
    groups, wanted = case
    a, c = of(groups, "a"), of(groups, "c")
    assert -1 not in a and [a.index(one) if one in a else -2 for one in c] == wanted


@pytest.mark.parametrize(
    "groups",
    [
        between("LOGISTIC", (2, 4)),
        between("MUL", (2, 4), given=2),
        between("ADD", (2, 4), (np.float32(3),)),
        between("TRANSPOSE", (4, 2), (np.int32([1, 0]),)),
    ],
    ids=["not in proportion", "a product of two", "a constant for all", "another axis"],
)
def test_channels_that_keep_their_unit(groups: ChannelGroups) -> None:
    assert set(of(groups, "a") + of(groups, "c")) == {-1}


def test_the_last_axis_is_the_innermost() -> None:
    assert flattened_channels(6, 3).tolist() == [0, 1, 2, 0, 1, 2]
