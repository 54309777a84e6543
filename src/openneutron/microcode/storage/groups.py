"""Factors of groups of inputs: 4-bit weights with a scale for each group are small quotients times one factor per group.

A quantizer with groups makes INT8 weights w = q * r, where q has 4 bits and r is the integer ratio of the group's scale to the
channel's. Nothing else in a file says so: factors are found again as common divisors, for any weights.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openneutron.errors import FormatError
from openneutron.microcode.storage.bits import Bytes, Ints
from openneutron.microcode.storage.order import Order
from openneutron.microcode.table import MAX_FACTOR, MAX_GROUP_BITS, MIN_GROUP_BITS

Weights = npt.NDArray[np.int8]
Factors = npt.NDArray[np.uint8]  # [groups][channels/M][taps][groups of inputs][M]

FACTOR_BITS = 4
_SAMPLE = 64  # blocks of output channels looked at before all others


def _divisors() -> npt.NDArray[np.uint16]:
    """Return, for each byte of a weight, a bit for each factor that divides it."""
    values = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64)
    factors = np.arange(1, MAX_FACTOR + 1)
    divides = values[:, None] % factors == 0
    return np.asarray((divides << np.arange(MAX_FACTOR)).sum(axis=1), np.uint16)


_DIVISORS = _divisors()


def _blocks(plain: Weights, order: Order) -> Weights:
    """Return the plain weights as [blocks][taps][inputs/N][M][N]."""
    return plain.reshape(order.blocks, order.taps, -1, order.units, order.length)


def _common(divisors: npt.NDArray[np.uint16], tiles: int) -> npt.NDArray[np.uint16]:
    """Return the common divisors of every `tiles` tiles of inputs; padding is zeros, which every factor divides."""
    missing = -divisors.shape[2] % tiles
    if missing:
        divisors = np.pad(divisors, ((0, 0), (0, 0), (0, missing), (0, 0)), constant_values=(1 << MAX_FACTOR) - 1)
    blocks, taps, count, units = divisors.shape
    return np.asarray(np.bitwise_and.reduce(divisors.reshape(blocks, taps, count // tiles, tiles, units), axis=3))


def _largest(divisors: npt.NDArray[np.uint16]) -> Factors:
    """Return the largest factor of each set of divisors; 1 for a group of zeros."""
    largest = np.frexp(divisors.astype(np.float32))[1].astype(np.uint8)
    return np.where(divisors == (1 << MAX_FACTOR) - 1, np.uint8(1), largest)


def _tile_divisors(plain: Weights, order: Order) -> npt.NDArray[np.uint16]:
    found = [np.bitwise_and.reduce(_DIVISORS[block.view(np.uint8)], axis=-1) for block in _blocks(plain, order)]
    return np.stack(found)


def find_group_bits(plain: Weights, order: Order) -> int:
    """Return log2 of the number of inputs that share a factor, as saves the most; 0 where factors save nothing."""
    blocks = _blocks(plain, order)
    if len(blocks) > 2 * _SAMPLE:  # enough to see that weights have no common divisors, as most have none
        sample = blocks[:: len(blocks) // _SAMPLE]
        part = Order(1, len(sample) * order.units, order.taps, order.inputs, order.units, order.length)
        if not _best_group_bits(_tile_divisors(np.ascontiguousarray(sample), part), order):
            return 0
    return _best_group_bits(_tile_divisors(plain, order), order)


def _best_group_bits(divisors: npt.NDArray[np.uint16], order: Order) -> int:
    best, best_bits = 0.0, 0
    for bits in range(MIN_GROUP_BITS, MAX_GROUP_BITS + 1):
        tiles = (1 << bits) // order.length
        if tiles == 0 or (1 << bits) % order.length:
            continue
        factors = _largest(_common(divisors, tiles))
        # A quotient takes log2(factor) bits less than its weight.
        saved = (1 << bits) * float(np.log2(factors).sum(dtype=np.float64)) - FACTOR_BITS * factors.size
        if saved > best:
            best, best_bits = saved, bits
    return best_bits


def split(plain: Weights, order: Order, bits: int) -> tuple[Weights, Factors]:
    """Return quotients in the order of the plain weights, and the factor of each group of 2^bits inputs."""
    factors = _largest(_common(_tile_divisors(plain, order), (1 << bits) // order.length))
    blocks = _blocks(plain, order)
    quotients = np.empty_like(blocks)
    for block, spread in enumerate(_spread(factors, order, bits)):
        quotients[block] = blocks[block] // spread
    return quotients.reshape(-1), factors


def _spread(factors: Factors, order: Order, bits: int) -> npt.NDArray[np.int8]:
    """Return the factors as [blocks][taps][inputs/N][M][1]."""
    tiles = (1 << bits) // order.length
    count = order.padded[1] // order.length
    return np.repeat(factors.astype(np.int8), tiles, axis=2)[:, :, :count, :, None]


def join(quotients: Weights, factors: Factors, order: Order, bits: int) -> Weights:
    """Undo `split`."""
    wide = _blocks(quotients, order).astype(np.int16) * _spread(factors, order, bits)
    if wide.size and (int(wide.max()) > 127 or int(wide.min()) < -128):
        raise FormatError("a weight of more than 8 bits")
    return wide.astype(np.int8).reshape(-1)


def counts(order: Order, bits: int) -> Ints:
    """Return the number of factors of each block of output channels."""
    return order.block_channels * order.taps * -(-order.inputs // (1 << bits))


def write_factors(factors: Factors, order: Order) -> list[bytes]:
    """Return the stored factors of each block: four bits each, one less than the factor, whole bytes for a block."""
    made = []
    for block, channels in enumerate(order.block_channels.tolist()):
        nibbles = factors[block, :, :, :channels].reshape(-1) - 1
        nibbles = np.append(nibbles, np.zeros(len(nibbles) & 1, np.uint8))
        made.append((nibbles[0::2] << 4 | nibbles[1::2]).tobytes())
    return made


def read_factors(stored: list[Bytes], order: Order, bits: int) -> Factors:
    """Return what `write_factors` was given, from the bytes of each block."""
    groups = -(-order.inputs // (1 << bits))
    factors = np.ones((order.blocks, order.taps, groups, order.units), np.uint8)
    for block, channels in enumerate(order.block_channels.tolist()):
        nibbles = np.stack([stored[block] >> 4, stored[block] & 15], axis=1).reshape(-1)
        size = order.taps * groups * channels
        if nibbles[size:].any():
            raise FormatError("factors are followed by other bits than zeros")
        factors[block, :, :, :channels] = nibbles[:size].reshape(order.taps, groups, channels) + 1
    return factors
