"""Weights and tables of many kinds, for what stores them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from openneutron.microcode.storage.order import Order
from openneutron.microcode.storage.sections import Section, choose, flat, raw, table
from openneutron.microcode.table import Packing, Storage

UNITS, LENGTH = 8, 8


@st.composite
def weights(draw: st.DrawFn, size: int) -> npt.NDArray[np.int8]:
    """Zeros, sparse, narrow, few values, uniform: whatever a layer may hold."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(("zeros", "sparse", "narrow", "palette", "uniform", "edges")))
    if kind == "zeros":
        return np.zeros(size, np.int8)
    if kind == "sparse":
        return np.where(rng.random(size) < 0.9, 0, rng.integers(-128, 128, size)).astype(np.int8)
    if kind == "narrow":
        return np.clip(np.rint(rng.laplace(0, draw(st.sampled_from((0.5, 4, 20))), size)), -128, 127).astype(np.int8)
    if kind == "palette":
        return rng.choice(rng.integers(-128, 128, 4), size).astype(np.int8)
    if kind == "edges":
        return rng.choice(np.array([-128, -127, 0, 1, 127]), size).astype(np.int8)
    return rng.integers(-128, 128, size).astype(np.int8)


@st.composite
def grouped(draw: st.DrawFn, order: Order) -> npt.NDArray[np.int8]:
    """Plain dense weights of a few bits whose groups of inputs have a common factor each."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.sampled_from((16, 32, 64, 128)))
    shape = order.groups, order.channels, order.taps, order.inputs
    groups = -(-order.inputs // size)
    factors = rng.integers(1, draw(st.integers(2, 17)), (*shape[:3], groups)).repeat(size, axis=3)
    small = np.zeros((order.groups, order.padded[0], order.taps, order.padded[1]), np.int8)
    small[:, : order.channels, :, : order.inputs] = rng.integers(-8, 8, shape) * factors[..., : order.inputs]
    tiles = small.reshape(order.groups, -1, order.units, order.taps, order.padded[1] // order.length, order.length)
    return tiles.transpose(0, 1, 3, 4, 2, 5).reshape(-1)


@st.composite
def orders(draw: st.DrawFn) -> tuple[Section, Order]:
    """Dense, depth-wise and flat weights, with padding and without."""
    packing = draw(st.sampled_from(Packing))
    groups = draw(st.integers(1, 3)) if packing is Packing.DENSE else 1
    channels = 1 if packing is Packing.FLAT else draw(st.integers(1, 20))
    taps = draw(st.integers(1, 300 if packing is Packing.FLAT else 9))
    inputs = draw(st.integers(1, 20) | st.integers(100, 300)) if packing is Packing.DENSE else 1
    section = Section(Storage.PACKED, 0, packing, groups=groups, channels=channels, taps=taps, inputs=inputs)
    order = section.order(UNITS, LENGTH)
    return Section(Storage.PACKED, order.plain_bytes, packing, 0, groups, channels, taps, inputs), order


@st.composite
def sections(draw: st.DrawFn) -> tuple[tuple[Section, ...], bytes]:
    """A whole weights block: sections in the forms that were chosen for them, and their plain bytes."""
    made: list[Section] = []
    block = b""
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(("weights", "table", "raw")))
        if kind == "weights":
            section, order = draw(orders())
            if section.packing is Packing.DENSE and draw(st.booleans()):
                plain = draw(grouped(order)).tobytes()
            else:
                plain = order.with_padding(draw(weights(order.weights))).tobytes()
        elif kind == "table":
            columns, channels = draw(st.integers(1, 4)), draw(st.integers(1, 20))
            padded = -(-channels // UNITS) * UNITS
            rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
            values = np.zeros((columns, padded), np.int64)
            reach = draw(st.sampled_from((0, 1, 100, 2**31 - 1)))
            values[:, :channels] = rng.integers(-reach - (reach > 0), reach + 1, (columns, channels))
            plain = values.astype("<i4").tobytes()
            section = table(len(plain), columns, channels)
        else:
            plain = draw(weights(draw(st.integers(1, 50)))).tobytes()
            section = draw(st.sampled_from((raw, flat)))(len(plain))
        made.append(choose(section, plain, UNITS, LENGTH))
        block += plain + bytes(-len(plain) % 16)
    return tuple(made), block
