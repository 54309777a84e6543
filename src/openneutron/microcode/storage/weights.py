"""Weights as they are stored: without padding, plain or in one of three codes, a stream per block of output channels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import numpy.typing as npt

from openneutron.errors import FormatError
from openneutron.microcode.storage import groups, prefix
from openneutron.microcode.storage.bits import MAX_BITS, Bytes, Ints, windows, write
from openneutron.microcode.storage.order import Order
from openneutron.microcode.table import MAX_RICE

Weights = npt.NDArray[np.int8]

MAX_QUOTIENT = 15  # ones in front of them
_CODED_AT_ONCE = 1 << 20  # weights
_PIECE = 1 << 16  # bytes counted at once: eight times that fits a processor's cache


def zigzag(weights: Weights) -> Ints:
    """Map 0, -1, 1, -2, 2 … to 0, 1, 2, 3, 4 …, the numbers that a Rice code stores."""
    values = weights.astype(np.int64)
    return np.where(values < 0, -2 * values - 1, 2 * values)


def count_bytes(weights: Weights) -> Ints:
    """Count how often each byte occurs, in pieces: numpy widens each byte that it counts to eight."""
    counts = np.zeros(256, np.int64)
    for at in range(0, weights.size, _PIECE):
        counts += np.bincount(weights[at : at + _PIECE].view(np.uint8), minlength=256)
    return counts


def _width(sizes: Ints) -> int:
    """Return the bytes that the size of each stream takes."""
    return next(width for width in (1, 2, 4) if int(sizes.max()) < 1 << 8 * width)


def _pieces(weights: Weights, order: Order) -> Iterator[tuple[Weights, Ints]]:
    """Yield the weights of some blocks after the other, with the position of each block's first in them.

    Codes of a weight take dozens of bytes while they are written, so not all of a large layer are written at once.
    """
    sizes = order.block_weights
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        begin = int(ends[first] - sizes[first])
        last = max(first + 1, int(np.searchsorted(ends, begin + _CODED_AT_ONCE, side="right")))
        yield weights[begin : int(ends[last - 1])], ends[first:last] - sizes[first:last] - begin
        first = last


def _streams_bytes(sizes: Ints) -> int:
    """Return the bytes of streams and of their sizes in front of them."""
    return int(sizes.sum()) + len(sizes) * _width(sizes)


def _bytes_of(lengths: Ints, starts: Ints) -> Ints:
    """Return the bytes of the streams that begin at `starts` among codes of so many bits."""
    return np.asarray(-(-np.add.reduceat(lengths, starts.astype(np.intp)) // 8), np.int64)


def rice_bytes(weights: Weights, order: Order, k: int) -> int:
    """Bytes that `write_rice` writes."""
    lengths = rice_lengths(k)
    sizes = [_bytes_of(lengths[part.view(np.uint8)], starts) for part, starts in _pieces(weights, order)]
    return _streams_bytes(np.concatenate(sizes))


def static_bytes(weights: Weights, order: Order, lengths: Ints) -> int:
    """Bytes that `write_static` writes behind the code's lengths."""
    return _streams_bytes(_static_sizes(weights, order, lengths))


def _static_sizes(weights: Weights, order: Order, lengths: Ints) -> Ints:
    sizes = []
    for part, starts in _pieces(weights, order):
        symbols, firsts = prefix.symbols_of(part, starts)
        sizes.append(_bytes_of(lengths[symbols], firsts))
    return np.concatenate(sizes)


def _static_lengths(weights: Weights, order: Order) -> Ints:
    """Return the lengths of the best code for the weights' symbols."""
    counts = np.zeros(prefix.SYMBOLS, np.int64)
    for part, starts in _pieces(weights, order):
        counts += np.bincount(prefix.symbols_of(part, starts)[0].astype(np.intp), minlength=prefix.SYMBOLS)
    return prefix.lengths_of(counts)


def _write_symbols(weights: Weights, order: Order, lengths: Ints) -> tuple[bytes, Ints]:
    """Return the streams of the weights' symbols, and their sizes."""
    codes = prefix.codes_of(lengths)
    written = []
    for part, starts in _pieces(weights, order):
        symbols, firsts = prefix.symbols_of(part, starts)
        written.append(write(codes[symbols], lengths[symbols], firsts))
    return _join(written)


def _join(written: list[tuple[bytes, Ints]]) -> tuple[bytes, Ints]:
    return b"".join(data for data, _ in written), np.concatenate([sizes for _, sizes in written])


def _prepend_sizes(data: bytes, sizes: Ints) -> tuple[bytes, int]:
    """Return the streams with their sizes in front, and the bytes of one size."""
    width = _width(sizes)
    return sizes.astype(f"<u{width}").tobytes() + data, width


def rice_bits(counts: Ints) -> tuple[int, int]:
    """Return the best Rice parameter for weights with these counts of byte values, and the bits it takes.

    Where every parameter would give a quotient that is too long, the bits exceed those of any other form.
    """
    every = _every_length()
    longest = every[0][counts > 0].max(initial=1) - 1  # what is counted in ones where no bit is stored as it is
    bits = (every @ counts).tolist()
    found = [(bits[k], k) for k in range(MAX_RICE + 1) if longest >> k <= MAX_QUOTIENT]
    least, k = min(found, default=(16 * int(counts.sum()), MAX_RICE))
    return k, least


@cache
def _every_length() -> npt.NDArray[np.int64]:
    """Return the length of each weight's Rice code: a row per parameter, a column per byte value."""
    every = zigzag(np.arange(256, dtype=np.uint8).view(np.int8))
    parameters = np.arange(MAX_RICE + 1)[:, None]
    return (every >> parameters) + 1 + parameters


def rice_lengths(k: int) -> Ints:
    """Return the length of each weight's code with parameter k, by byte value."""
    lengths: Ints = _every_length()[k]
    return lengths


def write_rice(weights: Weights, order: Order, k: int) -> tuple[bytes, int]:
    """Write Rice codes: (value >> k) ones, a zero, the low k bits."""
    written = []
    for part, starts in _pieces(weights, order):
        values = zigzag(part)
        quotient = values >> k
        codes = ((1 << quotient) - 1 << 1 + k) | values & (1 << k) - 1
        written.append(write(codes, quotient + 1 + k, starts))
    return _prepend_sizes(*_join(written))


def write_static(weights: Weights, order: Order) -> tuple[bytes, int]:
    """Write the code's lengths, then the symbols of each block."""
    lengths = _static_lengths(weights, order)
    data, width = _prepend_sizes(*_write_symbols(weights, order, lengths))
    return prefix.write_lengths(lengths) + data, width


def grouped_bytes(quotients: Weights, order: Order, bits: int) -> int:
    """Bytes that `write_groups` writes."""
    lengths = _static_lengths(quotients, order)
    sizes = _static_sizes(quotients, order, lengths) - (-groups.counts(order, bits) // 2)
    return len(prefix.write_lengths(lengths)) + _streams_bytes(sizes)


def write_groups(plain: Weights, order: Order, bits: int) -> tuple[bytes, int]:
    """Write the code's lengths, then of each block its factors and the symbols of its quotients."""
    quotients, factors = groups.split(plain, order, bits)
    found = order.without_padding(quotients)
    assert found is not None, "padding is a multiple of any factor"
    lengths = _static_lengths(found, order)
    codes, sizes = _write_symbols(found, order, lengths)
    ends = np.cumsum(sizes).tolist()
    heads = groups.write_factors(factors, order)
    streams = [head + codes[end - size : end] for head, size, end in zip(heads, sizes.tolist(), ends, strict=True)]
    data, width = _prepend_sizes(b"".join(streams), np.array([len(stream) for stream in streams]))
    return prefix.write_lengths(lengths) + data, width


def read_groups(data: Bytes, order: Order, bits: int, width: int) -> Weights:
    """Read what `write_groups` writes; returns plain weights, with padding."""
    lengths, taken = prefix.read_lengths(data)
    streams, sizes = _streams(data[taken:], order, width)
    heads = -(-groups.counts(order, bits) // 2)
    if (heads > sizes).any():
        raise FormatError("a stream ends inside its factors")
    parts = np.split(streams, np.cumsum(np.stack([heads, sizes - heads], axis=1).reshape(-1))[:-1])
    factors = groups.read_factors(parts[0::2], order, bits)
    found = _decode_static(lengths, np.concatenate(parts[1::2]), sizes - heads, order)
    return groups.join(order.with_padding(found), factors, order, bits)


def _streams(data: Bytes, order: Order, width: int) -> tuple[Bytes, Ints]:
    """Return the bytes of all streams, and their sizes."""
    count = order.blocks
    if width not in (1, 2, 4) or width * count > len(data):
        raise FormatError(f"sizes of {width} bytes for {count} streams in {len(data)} bytes")
    sizes = np.frombuffer(data[: width * count].tobytes(), f"<u{width}").astype(np.int64)
    if int(sizes.sum()) != len(data) - width * count:
        raise FormatError(f"streams of {int(sizes.sum())} bytes in {len(data) - width * count}")
    return data[width * count :], sizes


def _find_codes(steps: bytes, sizes: Ints, counts: Ints | None) -> tuple[list[int], list[int]]:
    """Return where codes begin, and the index of each stream's first code; the code at bit b is `steps[b]` bits long.

    Without `counts` a stream has as many codes as fit.
    """
    found: list[int] = []
    starts: list[int] = []
    at = 0
    for stream, size in enumerate(sizes.tolist()):
        end = at + 8 * size
        starts.append(len(found))
        left = int(counts[stream]) if counts is not None else end - at
        while left and at < end:
            step = steps[at]
            if step == 0 or at + step > end:
                break
            found.append(at)
            at += step
            left -= 1
        at = end
    return found, starts


def read_rice(data: Bytes, order: Order, k: int, width: int) -> Weights:
    """Read what `write_rice` writes."""
    streams, sizes = _streams(data, order, width)
    seen = windows(streams)
    ones = _leading_ones()[seen]
    steps = np.where(ones <= MAX_QUOTIENT, ones + 1 + k, 0).astype(np.uint8)
    found, _ = _find_codes(steps.tobytes(), sizes, order.block_weights)
    at = np.asarray(found, np.int64)
    if len(at) != order.weights:
        raise FormatError(f"{len(at)} of {order.weights} weights are stored")
    padded = np.concatenate([seen, np.zeros(32, np.uint16)])
    low = padded[at + ones[at] + 1].astype(np.int64) >> 16 - k if k else np.zeros(len(at), np.int64)
    values = ones[at].astype(np.int64) << k | low
    if int(values.max(initial=0)) > 255:
        raise FormatError("a weight of more than 8 bits")
    return np.where(values & 1, -(values + 1 >> 1), values >> 1).astype(np.int8)


def read_static(data: Bytes, order: Order, width: int) -> Weights:
    """Read what `write_static` writes."""
    lengths, taken = prefix.read_lengths(data)
    return _decode_static(lengths, *_streams(data[taken:], order, width), order)


def _decode_static(lengths: Ints, streams: Bytes, sizes: Ints, order: Order) -> Weights:
    """Return the weights of all streams, in the order of the block without padding."""
    symbol_of, length_of = prefix.lookup(lengths)
    seen = windows(streams) >> 1
    found, starts = _find_codes(length_of[seen].tobytes(), sizes, None)
    # A stream's last byte may leave room for codes that nobody wrote: only as many weights count as the block has.
    weights: list[Weights] = []
    symbols = symbol_of[seen[np.asarray(found, np.int64)]].astype(np.int64)
    for stream, count in enumerate(order.block_weights.tolist()):
        stop = starts[stream + 1] if stream + 1 < len(starts) else len(symbols)
        one = prefix.weights_of(symbols[starts[stream] : stop], np.zeros(1, np.int64), count)
        if len(one) < count:
            raise FormatError(f"a stream of {len(one)} weights, its block has {count}")
        weights.append(one)
    return np.concatenate(weights)


@cache
def _leading_ones() -> npt.NDArray[np.int16]:
    """Return the number of leading ones for each value of 16 bits."""
    values = np.arange(1 << 16)
    return np.asarray(16 - np.ceil(np.log2((~values & 0xFFFF) + 1)), np.int16)


assert MAX_QUOTIENT + 1 + MAX_RICE <= MAX_BITS
