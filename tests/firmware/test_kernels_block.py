"""Neutron-S: the kernels section lists exactly the kernels called, and the driver finds any other list."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import pytest

import openneutron
from openneutron.cli.inputs.blocks import blocks_of_file
from openneutron.compiler import kernels
from openneutron.errors import RuntimeFailure
from openneutron.machine.simulator import Simulator
from openneutron.microcode.decode import decode
from openneutron.microcode.encode import encode_blocks
from openneutron.microcode.instructions import Call, Loop, Program
from tests import tiny

kernels.rules()


@pytest.fixture(scope="module")
def program() -> Program:
    converted = openneutron.compile(tiny.convnet(), target="imx95").tflite
    (blocks,) = blocks_of_file(converted, "convnet")
    return decode(blocks.microcode, blocks.weights, blocks.kernels)


def called(program: Program) -> list[int]:
    steps = [step for item in program.instructions for step in (item.body if isinstance(item, Loop) else (item,))]
    return sorted({step.kernel for step in steps if isinstance(step, Call)})


def listed(ids: Sequence[int]) -> bytes:
    block = struct.pack(f"<I{len(ids)}H", len(ids), *ids)
    return block + bytes(-len(block) % 4)


def load(program: Program, block: bytes) -> None:
    """Prepare the program with another kernels block; sizes and checksum are made to fit, so only the list is wrong."""
    from dataclasses import replace

    changed = replace(program, kernels=block)
    with Simulator(*encode_blocks(changed), changed.kernels):
        pass


def test_the_section_lists_the_kernels_called(program: Program) -> None:
    assert program.kernels == listed(called(program))
    load(program, program.kernels)


@pytest.mark.parametrize(
    "change",
    [
        lambda ids: [*ids, ids[-1] + 1],
        lambda ids: ids[:-1],
        lambda ids: ids[1:],
        lambda ids: [*ids[:-1], ids[-1] + 1],
        lambda ids: ids[::-1],
        lambda ids: [*ids, ids[-1]],
        lambda ids: [],
    ],
    ids=["one added", "last removed", "first removed", "one replaced", "order", "one twice", "none"],
)
def test_any_other_list_is_refused(program: Program, change: Callable[[list[int]], list[int]]) -> None:
    with pytest.raises(RuntimeFailure, match="the kernels block does not list the kernels that are called"):
        load(program, listed(change(called(program))))


def test_bytes_behind_the_list_are_refused(program: Program) -> None:
    block = program.kernels.ljust(-(-len(program.kernels) // 16) * 16, b"\0")
    load(program, block)
    with pytest.raises(RuntimeFailure, match="kernels block"):
        load(program, block[:-1] + b"\1")
