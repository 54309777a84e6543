from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.certify.read.storage import unpack_words as unpack_for_checker
from openneutron.errors import FormatError
from openneutron.microcode.storage.words import pack_words, unpack_words


@given(st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-200, 200) | st.just(0), max_size=30))
def test_words_come_back_and_the_checker_reads_them_too(words: list[int]) -> None:
    packed = pack_words(words)
    assert unpack_words(packed, 0, len(words)) == (words, len(packed))
    plain = b"".join((word & 0xFFFFFFFF).to_bytes(4, "little") for word in words)
    assert unpack_for_checker(packed, 0, len(packed), len(words)) == (plain, len(packed))


@given(st.lists(st.tuples(st.integers(-(2**31), 2**31 - 1) | st.integers(-200, 200), st.sampled_from([0, 1, 2, 4]))))
def test_words_may_take_more_bytes_than_they_need(given: list[tuple[int, int]]) -> None:
    words, least = [word for word, _ in given], [size for _, size in given]
    packed = pack_words(words, least)
    assert unpack_words(packed, 0, len(words)) == (words, len(packed))
    plain = b"".join((word & 0xFFFFFFFF).to_bytes(4, "little") for word in words)
    assert unpack_for_checker(packed, 0, len(packed), len(words)) == (plain, len(packed))
    assert len(packed) >= -(-len(words) // 4) + sum(least) and len(packed) >= len(pack_words(words))


def test_zeros_take_two_bits() -> None:
    assert pack_words([0] * 8) == bytes(2)


def test_words_that_end_early_are_refused() -> None:
    packed = pack_words([1, 300, 70_000])
    for size in range(len(packed)):
        with pytest.raises(FormatError):
            unpack_words(packed[:size], 0, 3)
