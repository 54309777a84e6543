from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.errors import FormatError
from openneutron.microcode.storage import prefix
from tests.microcode.storage.samples import weights


@given(st.integers(1, 200).flatmap(weights))
def test_symbols_stand_for_the_weights(values: np.ndarray) -> None:
    starts = np.array([0, *({len(values) // 2} - {0})])
    symbols, places = prefix.symbols_of(values, starts)
    assert (prefix.weights_of(symbols, places, len(values)) == values).all()


@given(st.integers(1, 200).flatmap(weights), st.sets(st.integers(0, 199), max_size=8))
def test_symbols_are_counted_without_making_them(values: np.ndarray, breaks: set[int]) -> None:
    starts = np.array(sorted({0, *(one for one in breaks if one < len(values))}))
    by_byte = np.bincount(values.view(np.uint8), minlength=256)
    made = np.bincount(prefix.symbols_of(values, starts)[0], minlength=prefix.SYMBOLS)
    assert prefix.counts_of(values, starts, by_byte).tolist() == made.tolist()


@pytest.mark.parametrize("run", [1, 2, 3, 7, 100])
def test_a_run_takes_a_symbol_per_binary_digit(run: int) -> None:
    symbols, _ = prefix.symbols_of(np.zeros(run, np.int8), np.array([0]))
    assert len(symbols) == (run + 1).bit_length() - 1


@given(st.integers(0, 2**32 - 1), st.sampled_from((0.0, 0.5, 0.99)))
def test_lengths_make_a_prefix_code_and_come_back(seed: int, absent: float) -> None:
    rng = np.random.default_rng(seed)
    counts = np.where(rng.random(prefix.SYMBOLS) < absent, 0, rng.integers(1, 10 ** rng.integers(1, 7), prefix.SYMBOLS))
    counts[prefix.UNUSED] = 0
    lengths = prefix.lengths_of(counts)
    assert lengths.max() <= prefix.MAX_LENGTH
    assert sum(2.0**-one for one in lengths.tolist() if one) <= 1
    stored = prefix.write_lengths(lengths)
    found, taken = prefix.read_lengths(np.frombuffer(stored + b"\xff", np.uint8))
    assert (found == lengths).all() and taken == len(stored)


@given(st.integers(0, 2**32 - 1), st.sampled_from((0.0, 0.5, 0.99)))
def test_no_code_takes_less_than_the_least(seed: int, absent: float) -> None:
    rng = np.random.default_rng(seed)
    counts = np.where(rng.random(prefix.SYMBOLS) < absent, 0, 2 ** rng.integers(0, 1 + rng.integers(8), prefix.SYMBOLS))
    counts[:2] = 1 << rng.integers(12)  # powers of two: codes that come close to the entropy
    lengths = prefix.lengths_of(counts)
    least = prefix.least_bytes(counts)
    assert 0 < least <= len(prefix.write_lengths(lengths)) + -(-int((counts * lengths).sum()) // 8)


def test_skewed_counts_stay_within_the_longest_code() -> None:
    counts = np.zeros(prefix.SYMBOLS, np.int64)
    counts[:40] = 2 ** np.arange(40)
    assert prefix.lengths_of(counts).max() == prefix.MAX_LENGTH


def test_lengths_that_no_code_has_are_refused() -> None:
    with pytest.raises(FormatError, match="511 symbols"):
        prefix.read_lengths(np.frombuffer(bytes([0xFF] * 8), np.uint8))
