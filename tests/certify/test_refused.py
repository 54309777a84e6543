"""A refusal names the byte of the file, also where code is packed and constants are coded, and says whose byte it is."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from openneutron.certify.prove import prove
from openneutron.certify.read import microcode
from openneutron.certify.refused import WEIGHTS, Refused
from openneutron.convert import convert
from openneutron.microcode.storage.words import pack_words
from openneutron.options import Options
from tests import tiny
from tests.certify.forge import Blocks, reseal_blocks
from tests.compiler.networks import random_network


def refusal(source: bytes, change: Callable[[Blocks], None], **options: str) -> tuple[Refused, bytes, int]:
    """What is said of a changed file, the file, and where its microcode begins."""
    changed, start = reseal_blocks(convert(source, Options(**options)).model, change)  # type: ignore[arg-type]
    with pytest.raises(Refused) as found:
        prove(changed, source)
    return found.value, changed, start


def test_a_refusal_says_whose_byte_it_is() -> None:
    inner = Refused("it is wrong", 7, WEIGHTS).of("operator 2")
    assert str(inner) == "byte 7: operator 2: it is wrong"
    outer = inner.inside((100, 200, 300))
    assert outer.offset == 207 and str(outer) == "byte 207: operator 2: it is wrong (byte 7 of its weights block)"
    assert Refused("no place").inside((100, 200, 300)).offset is None


def test_a_call_in_packed_code_is_named_by_its_byte_in_the_file() -> None:
    source = tiny.convnet()
    compiled = convert(source, Options()).model
    places = sorted(at for _, at in prove(compiled, source).recognised)
    for place in places:

        def change(blocks: Blocks, place: int = place) -> None:
            assert struct.unpack_from("<I", blocks[0], 12)[0] & 2, "the code is not packed"
            assert blocks[0][place] == 1, "no call begins here"
            blocks[0][place + 5] = 255  # behind a byte of classes: the kernel's number

        error, changed, start = refusal(source, change)
        assert "kernel 255 is not in the published table" in str(error)
        assert error.offset == start + place and changed[error.offset] == 1
        assert f"(byte {place} of its microcode)" in str(error)


def test_a_packed_word_is_found_by_its_plain_place() -> None:
    rng = np.random.default_rng(3)
    values = [0, 5, -3, 300, -40_000, 0, 1 << 20, *(int(one) for one in rng.integers(-(1 << 31), 1 << 31, 9))]
    block = struct.pack("<BBH", 1, 0, len(values) + 1) + pack_words(values)
    for number, value in enumerate(values):
        at = microcode._stored_byte(block, [(0, 0)], 4 * (number + 1))
        _, behind = microcode.unpack_words(block, 4, len(block), number + 1)
        skipped = number % 4 == 0  # a byte of classes stands between
        assert int.from_bytes(block[at + skipped : behind], "little", signed=True) == value


def test_coded_constants_are_named_by_their_byte_in_the_file() -> None:
    source = random_network(3)[0]
    compiled = convert(source, Options()).model
    seen = set()
    for at in range(0, 4000, 197):

        def change(blocks: Blocks, at: int = at) -> None:
            blocks[1][at % len(blocks[1])] ^= 0xFF

        try:
            prove(reseal_blocks(compiled, change)[0], source)
        except Refused as error:
            if "damaged" in str(error):
                assert error.offset is not None and "of its weights block)" in str(error)
                seen.add(error.offset)
    assert seen, "no section was damaged"


def test_a_source_that_is_none_is_named() -> None:
    compiled = convert(tiny.convnet(), Options()).model
    with pytest.raises(Refused, match="source: this is no TFL3 file"):
        prove(compiled, b"\x08\x07\x12\x00" * 8)
