"""Kernels that a block lists, and how much of coded constants one instruction reads."""

from __future__ import annotations

import pytest

from openneutron.certify.read.layout import check_kernels, window_bytes
from openneutron.certify.read.microcode import Copy, Loop, Program, State
from openneutron.certify.refused import KERNELS, Refused
from tests.certify.small import call, operand

LISTED = b"\3\0\0\0\1\0\x05\0\x07\0\0\0"


def test_kernels_are_listed_in_order() -> None:
    check_kernels(LISTED, {7, 1, 5}, listed=True)
    check_kernels(bytes(4), {7}, listed=False)
    for wrong, byte in ((LISTED[:4] + LISTED[6:] + b"\0\0", 4), (LISTED + b"\0", 12), (LISTED[:-1] + b"\1", 11)):
        with pytest.raises(Refused, match=r"does not list kernels \[1, 5, 7\]") as refusal:
            check_kernels(wrong, {7, 1, 5}, listed=True)
        assert (refusal.value.offset, refusal.value.block) == (byte, KERNELS)
    with pytest.raises(Refused, match="linked firmware has a kernels block"):
        check_kernels(LISTED, {1, 5, 7}, listed=False)


def test_a_window_is_the_most_that_one_instruction_reads() -> None:
    coded = [(0, 64), (64, 96), (128, 512)]

    def window(*steps: object, states: tuple[State, ...] = ()) -> int:
        return window_bytes(Program("imxrt700", 1, 1, {}, (), steps, 0, states), coded)  # type: ignore[arg-type]

    two = {
        "input": operand("input", (1, 1, 1, 4)), "weights": operand("weights", (1, 1, 1, 4), offset=16),
        "table": operand("weights", (1, 1, 1, 4), offset=80), "output": operand("output", (1, 1, 1, 4)),
    }  # fmt: skip
    fetch = Copy(0, 0, ("weights", 0, 60), ("prefetch", 0, 0), 8)
    assert window() == 0
    assert window(call("conv2d", two, {})) == 64 + 32, "each operand's section, counted whole"
    assert window(fetch) == 64 and window(Loop(0, 3, (fetch,))) == 64
    assert window(Copy(0, 0, ("scratch", 0, 60), ("prefetch", 0, 0), 8)) == 0
    assert window(states=(State(0, bytes(16), 100),)) == 0 and window(states=(State(0, bytes(16), 200),)) == 384
