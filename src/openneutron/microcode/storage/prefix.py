"""The static code: a canonical prefix code for weights and runs of zeros; its lengths are stored before the weights.

Symbols: 0 and 1 are the digits of a run of zeros, 2v is the weight v > 0 and 2|v| + 1 the weight v < 0. Digit k of a run
stands for 2^k (symbol 0) or 2^(k+1) zeros (symbol 1), so a run of n takes about log2(n) symbols. Codes have 1 to 15 bits, are
given out by length and then by symbol, and are stored most significant bit first.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from openneutron.errors import FormatError
from openneutron.microcode.storage.bits import Bytes, Ints, write

SYMBOLS = 258
UNUSED = 256  # would be the weight 128, which INT8 does not have
MAX_LENGTH = 15
_START = 8  # what the first length is compared with
_COUNT_BITS = 9
_LITERAL_BITS = 4
_ABSENT_BITS = 4
# How a length follows the one before: same, one more, one less, no code at all; anything else is spelt out.
_SAME, _MORE, _LESS, _ABSENT, _LITERAL = 0b0, 0b10, 0b110, 0b1110, 0b1111


def _symbols() -> Ints:
    values = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64)
    return np.where(values < 0, 1 - 2 * values, 2 * values)


_SYMBOL_OF = _symbols()  # by the weight's byte


def symbols_of(weights: npt.NDArray[np.int8], starts: Ints) -> tuple[Ints, Ints]:
    """Return the symbols of the weights, and the position of each stream in them.

    Streams begin at `starts`; a run of zeros ends where a stream does.
    """
    zero = weights == 0
    first = np.ones(len(weights), np.bool_)
    first[1:] = ~(zero[1:] & zero[:-1])
    first[starts] = True
    at = np.flatnonzero(first)
    runs = np.flatnonzero(zero[at])  # few: what follows for them alone is not worth doing for all weights
    sizes = np.append(at, len(weights))[runs + 1] - at[runs]
    digits = np.frexp(sizes + 1.0)[1].astype(np.int64) - 1
    counts = np.ones(len(at), np.int64)
    counts[runs] = digits
    place = np.cumsum(counts) - counts
    found = np.zeros(int(counts.sum()), np.int64)
    found[place] = _SYMBOL_OF[weights.view(np.uint8)[at]]
    for digit in range(int(digits.max(initial=0))):
        there = digits > digit
        found[place[runs[there]] + digit] = sizes[there] + 1 >> digit & 1
    return found, np.append(place, len(found))[np.searchsorted(at, starts)]


def counts_of(weights: npt.NDArray[np.int8], starts: Ints, by_byte: Ints) -> Ints:
    """Return how often each symbol occurs in `symbols_of`, without computing these; `by_byte` counts the weights."""
    counts = np.zeros(SYMBOLS, np.int64)
    counts[_SYMBOL_OF] = by_byte
    zeros = np.flatnonzero(weights == 0)
    fresh = np.ones(len(zeros) + 1, np.bool_)  # where a run begins, and behind the last one
    fresh[1:-1] = np.diff(zeros) > 1
    at = np.searchsorted(zeros, starts)
    at = at[at < len(zeros)]
    fresh[at] = True  # a run that goes on over a start ends there; elsewhere the next zero begins one anyway
    sizes = np.diff(np.flatnonzero(fresh)) + 1
    counts[:2] = 0
    while len(sizes := sizes[sizes > 1]):
        ones = int(np.count_nonzero(sizes & 1))
        counts[:2] += (len(sizes) - ones, ones)
        sizes >>= 1
    return counts


def weights_of(symbols: Ints, starts: Ints, most: int) -> npt.NDArray[np.int8]:
    """Return the first `most` weights that the symbols encode; a run of zeros ends where a stream does (`starts`)."""
    if not len(symbols):
        return np.empty(0, np.int8)
    digit = symbols < 2
    places = np.arange(len(symbols))
    behind = np.maximum.accumulate(np.where(digit, 0, places + 1))  # the place behind the last weight other than zero
    fresh = np.zeros(len(symbols), np.int64)
    fresh[starts] = starts
    exponent = np.where(digit, places - np.maximum(behind, np.maximum.accumulate(fresh)), 0)
    sizes = np.where(digit, np.left_shift(symbols + 1, np.minimum(exponent, 31)), 1)
    values = np.where(symbols & 1, -(symbols >> 1), symbols >> 1)
    # A few bits may say a run of any length, so what is beyond `most` never comes into being.
    left = most - (np.cumsum(sizes) - sizes)
    return np.repeat(np.where(digit, 0, values).astype(np.int8), np.clip(sizes, 0, np.maximum(left, 0)).astype(np.intp))


def lengths_of(counts: Ints) -> Ints:
    """Return code lengths of at most 15 bits that are optimal for these counts, or nearly so if 15 bits are too few."""
    while True:
        lengths = _huffman(counts)
        if int(lengths.max(initial=0)) <= MAX_LENGTH:
            return lengths
        counts = np.where(counts > 0, counts + 1 >> 1, 0)


def least_bytes(counts: Ints) -> int:
    """Return a lower bound on the size of any code for symbols of these counts: their entropy and the shortest lengths.

    Computing the code takes much longer than finding out that it cannot be smaller than another form.
    """
    there = np.flatnonzero(counts)
    used = counts[there]
    entropy = float((used * np.log2(used.sum() / used)).sum())
    absent = int(there.max(initial=-1)) + 1 - len(there)
    return int((_COUNT_BITS + len(there) + _ABSENT_BITS * absent + entropy) // 8)


def _huffman(counts: Ints) -> Ints:
    used = np.flatnonzero(counts).tolist()
    lengths = np.zeros(SYMBOLS, np.int64)
    if len(used) < 2:
        lengths[used] = 1
        return lengths
    # Leaves are numbered first, then what two of them became, so that a node's parent has a higher number.
    heap = [(count, symbol, leaf) for leaf, (symbol, count) in enumerate(zip(used, counts[used].tolist(), strict=True))]
    heapq.heapify(heap)
    parents = [0] * (2 * len(used) - 1)
    for node in range(len(used), len(parents)):
        low, order, left = heapq.heappop(heap)
        high, _, right = heap[0]
        parents[left] = parents[right] = node
        heapq.heapreplace(heap, (low + high, order, node))
    depths = [0] * len(parents)
    for node in range(len(parents) - 2, -1, -1):
        depths[node] = depths[parents[node]] + 1
    lengths[used] = depths[: len(used)]
    return lengths


def codes_of(lengths: Ints) -> Ints:
    """Return the code of each symbol, right-aligned."""
    codes = np.zeros(SYMBOLS, np.int64)
    code = 0
    for length in range(1, MAX_LENGTH + 1):
        for symbol in np.flatnonzero(lengths == length).tolist():
            codes[symbol] = code
            code += 1
        code <<= 1
    return codes


def write_lengths(lengths: Ints) -> bytes:
    """Return the stored form of the lengths: their number, then each relative to the one before."""
    count = int(np.flatnonzero(lengths).max(initial=-1)) + 1
    codes, sizes = [count], [_COUNT_BITS]
    last = _START
    for length in lengths[:count].tolist():
        if length == 0:
            codes.append(_ABSENT)
            sizes.append(_ABSENT_BITS)
            continue
        if length == last:
            codes.append(_SAME)
            sizes.append(1)
        elif length == last + 1:
            codes.append(_MORE)
            sizes.append(2)
        elif length == last - 1:
            codes.append(_LESS)
            sizes.append(3)
        else:
            codes.append(_LITERAL << _LITERAL_BITS | length)
            sizes.append(4 + _LITERAL_BITS)
        last = length
    return write(np.array(codes), np.array(sizes), np.array([0]))[0]


def read_lengths(data: Bytes) -> tuple[Ints, int]:
    """Return the lengths at the start of `data`, and the number of bytes they take."""
    bits = "".join(f"{byte:08b}" for byte in data[: SYMBOLS + 4].tolist())
    lengths = np.zeros(SYMBOLS, np.int64)
    count, at, last = int(bits[:_COUNT_BITS] or "0", 2), _COUNT_BITS, _START
    if count > SYMBOLS:
        raise FormatError(f"a code of {count} symbols, there are {SYMBOLS}")
    for symbol in range(count):
        ones = len(bits[at : at + 4]) - len(bits[at : at + 4].lstrip("1"))
        if ones == 4:
            last = int(bits[at + 4 : at + 8] or "0", 2)
            at += 8
        else:
            at += ones + 1
            last += (0, 1, -1, 0)[ones]
        lengths[symbol] = 0 if ones == 3 else last
        if not 0 < last <= MAX_LENGTH or at > len(bits):
            raise FormatError(f"the code of symbol {symbol} has {last} bits")
    spent = (np.left_shift(1, MAX_LENGTH - lengths) * (lengths > 0)).sum()
    if spent > 1 << MAX_LENGTH or lengths[UNUSED]:
        raise FormatError("a code whose lengths fit no prefix code")
    return lengths, -(-at // 8)


def lookup(lengths: Ints) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint8]]:
    """Return tables from the next 15 bits to symbol and length; length 0 where no code begins with these bits."""
    symbols = np.zeros(1 << MAX_LENGTH, np.uint16)
    sizes = np.zeros(1 << MAX_LENGTH, np.uint8)
    codes = codes_of(lengths)
    for symbol in np.flatnonzero(lengths).tolist():
        free = MAX_LENGTH - int(lengths[symbol])
        start = int(codes[symbol]) << free
        symbols[start : start + (1 << free)] = symbol
        sizes[start : start + (1 << free)] = lengths[symbol]
    return symbols, sizes
