"""Factors of groups: found in any weights, stored in four bits, and damaged ones refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.errors import FormatError
from openneutron.microcode.storage import groups, prefix
from openneutron.microcode.storage import weights as coded
from openneutron.microcode.storage.order import Order
from openneutron.microcode.storage.sections import Section, choose
from openneutron.microcode.table import Packing, Storage
from tests.microcode.storage.samples import LENGTH, UNITS, grouped, weights


def four_bit_weights(order: Order, size: int, seed: int = 0) -> np.ndarray:
    """Plain weights of one group and one tap: normal ones in [-7, 7], times 6 to 16 for each group of inputs."""
    rng = np.random.default_rng(seed)
    factors = rng.integers(6, 17, (order.channels, -(-order.inputs // size))).repeat(size, axis=1)
    small = np.clip(np.rint(rng.normal(0, 3, (order.channels, order.inputs))), -7, 7) * factors[:, : order.inputs]
    padded = np.zeros(order.padded, np.int8)
    padded[: order.channels, : order.inputs] = small
    return (
        padded.reshape(-1, order.units, padded.shape[1] // order.length, order.length).transpose(0, 2, 1, 3).reshape(-1)
    )


@pytest.mark.parametrize("length", [4, 8, 16])
@pytest.mark.parametrize("size", [16, 32, 64, 128])
def test_four_bit_weights_take_less_than_four_and_a_half_bits(size: int, length: int) -> None:
    order = Order(1, 64, 1, 512, 8, length)
    plain = four_bit_weights(order, size)
    assert 1 << groups.find_group_bits(plain, order) == size
    section = Section(Storage.PACKED, plain.size, Packing.DENSE, groups=1, channels=64, taps=1, inputs=512)
    chosen = choose(section, plain.tobytes(), 8, length)
    assert chosen.storage is Storage.GROUPS and 8 * chosen.stored < 4.5 * order.weights
    # The bytes are as many as the chooser said.
    assert len(coded.write_groups(plain, order, chosen.parameter)[0]) == chosen.stored


@given(st.data(), st.sampled_from((4, 5, 6, 7)))
def test_groups_lose_nothing(data: st.DataObject, bits: int) -> None:
    sizes = [data.draw(st.integers(1, most)) for most in (2, 20, 4, 300)]
    order = Order(*sizes, UNITS, LENGTH)
    plain = data.draw(grouped(order)) if data.draw(st.booleans()) else None
    if plain is None:
        plain = order.with_padding(data.draw(weights(order.weights)))
    quotients, factors = groups.split(plain, order, bits)
    assert (groups.join(quotients, factors, order, bits) == plain).all()
    stored, width = coded.write_groups(plain, order, bits)
    assert (coded.read_groups(np.frombuffer(stored, np.uint8), order, bits, width) == plain).all()


def test_weights_without_common_divisors_have_no_groups() -> None:
    order = Order(1, 2048, 1, 64, 8, 8)
    plain = np.random.default_rng(0).integers(-127, 128, order.plain_bytes).astype(np.int8)
    assert groups.find_group_bits(plain, order) == 0


def test_zeros_have_the_factor_one() -> None:
    order = Order(1, 8, 1, 32, 8, 8)
    quotients, factors = groups.split(np.zeros(order.plain_bytes, np.int8), order, 5)
    assert not quotients.any() and (factors == 1).all() and groups.find_group_bits(quotients, order) == 0


def test_products_beyond_eight_bits_are_refused() -> None:
    order = Order(1, 8, 1, 32, 8, 8)
    quotients, factors = np.full(order.plain_bytes, 9, np.int8), np.full((1, 1, 1, 8), 15, np.uint8)
    with pytest.raises(FormatError, match="more than 8 bits"):
        groups.join(quotients, factors, order, 5)
    assert groups.join(quotients, factors - 1, order, 5).max() == 126


def test_factors_end_with_zeros() -> None:
    order = Order(1, 1, 1, 32, 8, 8)
    (stored,) = groups.write_factors(np.full((1, 1, 1, 8), 16, np.uint8), order)
    assert stored == b"\xf0"
    with pytest.raises(FormatError, match="other bits than zeros"):
        groups.read_factors([np.array([0xF1], np.uint8)], order, 5)


def test_a_stream_that_is_shorter_than_its_factors_is_refused() -> None:
    order = Order(1, 8, 1, 128, 8, 8)
    plain = four_bit_weights(order, 32)
    stored, width = coded.write_groups(plain, order, 5)
    _, described = prefix.read_lengths(np.frombuffer(stored, np.uint8))
    short = stored[:described] + (15).to_bytes(width, "little") + stored[described + width :][:15]
    with pytest.raises(FormatError, match="ends inside its factors"):
        coded.read_groups(np.frombuffer(short, np.uint8), order, 5, width)
