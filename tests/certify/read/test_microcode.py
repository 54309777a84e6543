"""The decoder of microcode checks header, tables and code, and names the byte that is wrong."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache

import pytest

from openneutron.certify.read.litert import read_model
from openneutron.certify.read.microcode import Call, Program, decode, is_foreign
from openneutron.certify.refused import Refused
from openneutron.convert import convert
from openneutron.options import Options
from tests import tiny
from tests.certify.forge import Blocks, seal

MOST = 1 << 26


@cache
def compile_blocks() -> tuple[bytes, bytes, bytes]:
    """The blocks of a small model."""
    graph = read_model(convert(tiny.convnet(), Options()).model).graphs[0]
    (op,) = [one for one in graph.operators if one.custom == b"NeutronGraph"]
    made = [bytes(graph.tensors[index].data or b"") for index in op.inputs[-3:]]
    return made[0], made[1], made[2]


def decode_changed(change: Callable[[bytearray], None], *, sealed: bool = True) -> Program:
    blocks: Blocks = tuple(map(bytearray, compile_blocks()))  # type: ignore[assignment]
    change(blocks[0])
    if sealed:
        seal(blocks)
    return decode(*map(bytes, blocks), MOST)  # type: ignore[call-arg]


def word(at: int, value: int) -> Callable[[bytearray], None]:
    return lambda block: struct.pack_into("<I", block, at, value & 0xFFFFFFFF)


def test_a_program_is_decoded() -> None:
    program = decode_changed(lambda block: None)
    calls = [step for step in program.steps if isinstance(step, Call)]
    assert program.target == "imxrt700" and calls[0].kernel == "conv2d"
    assert calls[0].output.shape == calls[0].operands["output"].shape
    assert compile_blocks()[0][calls[0].at] == 1, "a call's byte is that of its instruction"
    assert not calls[0].operands["lut"].present


def test_another_format_is_foreign() -> None:
    block = compile_blocks()[0]
    assert not is_foreign(block) and is_foreign(block[:4] + b"\2" + block[5:]) and is_foreign(b"")


@pytest.mark.parametrize(
    ("at", "value", "why"),
    [
        (0, 0, "byte 0: this is no open microcode"), (24, 1, "a block of 1 bytes"), (28, 0, "a block of 0 bytes"),
        (16, 1 << 30, "the identity leaves the block"), (36, 1 << 30, "of memory and"), (64, 1 << 30, "the code leaves"),
        (72, 99, "99 calls are announced"), (80, 1 << 30, "a state of"), (108, 1, "words that mean nothing"),
        (100, 1 << 30, "constants of 1073741824 bytes"), (104, 1 << 20, "calls read"),
    ],
)  # fmt: skip
def test_a_header_that_lies_is_refused(at: int, value: int, why: str) -> None:
    with pytest.raises(Refused, match=why):
        decode_changed(word(at, value), sealed=at != 16)


def test_a_checksum_and_a_target_are_compared() -> None:
    identity = struct.unpack_from("<I", compile_blocks()[0], 16)[0]

    def rename(block: bytearray) -> None:
        block[identity] ^= 1

    with pytest.raises(Refused, match="the checksum is"):
        decode_changed(rename, sealed=False)
    with pytest.raises(Refused, match=f"byte {identity}: target 'hmxrt700' is not published"):
        decode_changed(rename)


def test_every_byte_of_the_header_matters() -> None:
    """No byte of header and identity may be another with a checksum that is right."""
    identity = struct.unpack_from("<I", compile_blocks()[0], 16)[0]
    free = set(range(identity + 28, identity + 32))  # the checksum itself
    free |= set(range(36, 44)) | set(range(76, 80))  # sizes of memory, which the replay compares
    for at in set(range(identity + 48)) - free:

        def flip(block: bytearray, at: int = at) -> None:
            block[at] ^= 0x40

        try:
            program = decode_changed(flip, sealed=not 16 <= at < 20)
        except Refused:
            continue
        assert program != decode_changed(lambda block: None) or identity + 20 <= at < identity + 32, (
            f"byte {at} is read by nobody"
        )
