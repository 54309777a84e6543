"""The weights block as sections: chooses the smallest form of each, writes them, and reads them back.

Example:
    >>> chosen = [choose(piece, data, units=8, length=8) for piece, data in pieces]
    >>> stored, records = write_sections(chosen, plain, units=8, length=8)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openneutron.errors import FormatError
from openneutron.microcode.header import pack, size_of, unpack
from openneutron.microcode.storage import groups, prefix, weights
from openneutron.microcode.storage.columns import columns_bytes, read_columns, write_columns
from openneutron.microcode.storage.order import Order
from openneutron.microcode.storage.words import pack_words, unpack_words
from openneutron.microcode.table import (
    ALIGNMENT,
    FREE_PLAIN_BYTES,
    MAX_EXPANSION,
    MAX_PLAIN_BYTES,
    SECTION,
    SECTION_FORMS,
    SECTION_SIZES,
    Packing,
    Storage,
)  # fmt: skip

Buffer = bytes | memoryview

_WORDS = size_of(SECTION) // 4
WORD = 4  # sections begin at a whole word of the weights block: a processor reads raw ones in place


class Section(NamedTuple):
    """See `table.SECTION`; `coded_bytes` is found when a form is chosen, and is what the array loads."""

    storage: Storage
    plain: int
    packing: Packing = Packing.FLAT
    parameter: int = 0
    groups: int = 0
    channels: int = 0
    taps: int = 0
    inputs: int = 0
    stored: int = 0

    def order(self, units: int, length: int) -> Order:
        """Return the order of the plain weights; (M, N) are the target's."""
        blocks = {Packing.FLAT: (1, 1), Packing.DENSE: (units, length), Packing.LANES: (units, 1)}[self.packing]
        return Order(self.groups, self.channels, self.taps, self.inputs, *blocks)


def raw(size: int) -> Section:
    """Return a section of plain bytes."""
    return Section(Storage.RAW, size, stored=size)


def flat(size: int) -> Section:
    """Return a section of weights in unknown order, coded as one stream."""
    return Section(Storage.PACKED, size, Packing.FLAT, groups=1, channels=1, taps=size, inputs=1)


def table(size: int, columns: int, channels: int) -> Section:
    """Return a section for a table of INT32 columns."""
    return Section(Storage.COLUMNS, size, Packing.LANES, parameter=columns, channels=channels)


def choose(section: Section, plain: Buffer, units: int, length: int) -> Section:
    """Return the section in the smallest form; data that does not fit the description is stored plain."""
    if section.storage is Storage.COLUMNS:
        size = columns_bytes(_columns(section, plain), section.channels)
        return raw(section.plain) if size is None or size >= section.plain else section._replace(stored=size)
    if section.storage is Storage.RAW:
        return raw(section.plain)
    order = section.order(units, length)
    found = order.without_padding(np.frombuffer(plain, np.int8)) if order.plain_bytes == section.plain else None
    if found is None:
        is_flat = section.packing is Packing.FLAT
        return raw(section.plain) if is_flat else choose(flat(section.plain), plain, units, length)
    streams = len(order.block_weights)
    by_byte = weights.count_bytes(found)
    k, rice = weights.rice_bits(by_byte)
    starts = np.cumsum(order.block_weights) - order.block_weights
    counts = prefix.counts_of(found, starts, by_byte)
    sizes = {Storage.RAW: section.plain, Storage.PACKED: found.size, Storage.RICE: -(-rice // 8) + 2 * streams}
    if prefix.least_bytes(counts) + 2 * streams <= min(sizes.values()):
        lengths = prefix.lengths_of(counts)
        head = len(prefix.write_lengths(lengths))
        sizes[Storage.STATIC] = head + -(-int((counts * lengths).sum()) // 8) + 2 * streams
    best = min(sizes, key=lambda one: (sizes[one], one))
    stored = sizes[best]  # of coded ones an estimate: streams end with a whole byte, and large ones have longer sizes
    if best is Storage.RICE:
        stored = weights.rice_bytes(found, order, k)
    elif best is Storage.STATIC:
        stored = head + weights.static_bytes(found, order, lengths)
    bits, grouped = _try_groups(section, plain, order)
    if bits and grouped < stored:
        return section._replace(storage=Storage.GROUPS, parameter=bits, stored=grouped)
    if stored >= section.plain:
        return raw(section.plain)
    return section._replace(storage=best, parameter=k if best is Storage.RICE else 0, stored=stored)


def _try_groups(section: Section, plain: Buffer, order: Order) -> tuple[int, int]:
    """Return the best group size, as its log2, and the bytes stored; 0 where groups have no common divisors."""
    if section.packing is not Packing.DENSE:
        return 0, section.plain
    content = np.frombuffer(plain, np.int8)
    bits = groups.find_group_bits(content, order)
    if not bits:
        return 0, section.plain
    quotients = order.without_padding(groups.split(content, order, bits)[0])
    assert quotients is not None, "padding is a multiple of any factor"
    return bits, weights.grouped_bytes(quotients, order, bits)


def _weights(section: Section, plain: Buffer, order: Order) -> npt.NDArray[np.int8]:
    found = order.without_padding(np.frombuffer(plain, np.int8))
    if found is None:
        raise FormatError("padding of coded weights is not all zeros")
    return found


def _columns(section: Section, plain: Buffer) -> npt.NDArray[np.int32]:
    return np.frombuffer(plain, "<i4").reshape(section.parameter, -1)


def _encode(section: Section, plain: Buffer, units: int, length: int) -> tuple[Buffer, int]:
    """Return the stored bytes, and the width of the stream sizes in front of them (0 without streams)."""
    if section.storage is Storage.RAW:
        return plain, 0
    if section.storage is Storage.COLUMNS:
        return write_columns(_columns(section, plain), section.channels), 0
    order = section.order(units, length)
    found = _weights(section, plain, order)
    if section.storage is Storage.PACKED:
        return found.data, 0
    if section.storage is Storage.GROUPS:
        return weights.write_groups(np.frombuffer(plain, np.int8), order, section.parameter)
    if section.storage is Storage.RICE:
        return weights.write_rice(found, order, section.parameter)
    return weights.write_static(found, order)


def _read(section: Section, stored: bytes, width: int, units: int, length: int) -> bytes:
    data = np.frombuffer(stored, np.uint8)
    if section.storage is Storage.RAW:
        return stored
    if section.storage is Storage.COLUMNS:
        padded = section.plain // (4 * section.parameter)
        return read_columns(data, section.parameter, section.channels, padded).tobytes()
    order = section.order(units, length)
    if section.storage is Storage.PACKED:
        found = data.view(np.int8)
        if found.size != order.weights:
            raise FormatError(f"{found.size} of {order.weights} weights are stored")
    elif section.storage is Storage.RICE:
        found = weights.read_rice(data, order, section.parameter, width)
    elif section.storage is Storage.GROUPS:
        return weights.read_groups(data, order, section.parameter, width).tobytes()
    else:
        found = weights.read_static(data, order, width)
    return order.with_padding(found).tobytes()


def _pieces(sections: Sequence[Section], plain: bytes) -> Iterator[tuple[Section, memoryview]]:
    at, view = 0, memoryview(plain)
    for section in sections:
        yield section, view[at : at + section.plain]
        at += -(-section.plain // ALIGNMENT) * ALIGNMENT


class Sizes:
    """Coded sizes of byte ranges of region WEIGHTS, looked up for every call and copy that is priced.

    Example:
        >>> Sizes(program.sections).coded_bytes(operand.offset, operand.channels)
    """

    def __init__(self, sections: Sequence[Section]) -> None:
        self._sections = tuple(sections)
        sizes = [-(-section.plain // ALIGNMENT) * ALIGNMENT for section in sections]
        self._ends = list(accumulate(sizes))
        self._starts = [0, *self._ends][: len(sizes)]

    def coded_bytes(self, offset: int, size: int) -> int:
        """Return the coded size of a range, in proportion for a part of a section; 0 without sections, when all is plain."""
        found = 0
        for at in range(bisect_right(self._ends, offset), bisect_left(self._starts, offset + size)):
            section, start = self._sections[at], self._starts[at]
            wanted = min(offset + size, start + section.plain) - max(offset, start)
            found += -(-max(wanted, 0) * section.stored // section.plain)
        return found


def plain_bytes(sections: Sequence[Section]) -> int:
    """Bytes of all sections when decoded."""
    return sum(-(-section.plain // ALIGNMENT) * ALIGNMENT for section in sections)


def write_sections(
    sections: Sequence[Section], plain: bytes, units: int, length: int, least: Sequence[int] = ()
) -> tuple[bytes, bytes]:
    """Return the weights block, filled up to a multiple of the alignment, and the section table in packed words.

    `least` is the least number of stored bytes for each word of a record.
    """
    block = BytesIO()  # grows in place: a list of parts and their join would be the block twice
    records = bytearray()
    for section, data in _pieces(sections, plain):
        stored, width = _encode(section, data, units, length)
        record = pack(
            SECTION, storage=int(section.storage), packing=int(section.packing), parameter=section.parameter, width=width,
            plain=section.plain, stored=len(stored), groups=section.groups, channels=section.channels, taps=section.taps,
            inputs=section.inputs,
        )  # fmt: skip
        words = [int.from_bytes(record[at : at + 4], "little") for at in range(0, len(record), 4)]
        records += pack_words(words, least)
        block.write(stored)
        block.write(bytes(-len(stored) % WORD))
    block.write(bytes(-block.tell() % ALIGNMENT))
    return block.getvalue(), bytes(records)


def read_sections(
    microcode: bytes, at: int, count: int, block: bytes, units: int, length: int
) -> tuple[tuple[Section, ...], bytes]:
    """Return the sections whose table begins at byte `at` of the microcode, and the decoded block."""
    sections: list[Section] = []
    plain: list[bytes] = []
    taken = total = 0
    for number in range(count):
        place = at
        words, at = unpack_words(microcode, at, _WORDS)
        fields = unpack(SECTION, b"".join((word & 0xFFFFFFFF).to_bytes(4, "little") for word in words), 0)
        width, stored = fields.pop("width"), fields["stored"]
        section = _check_section(fields, width, units, length, f"section {number} at byte {place}")
        total += -(-section.plain // ALIGNMENT) * ALIGNMENT
        if taken + stored > len(block) or total > MAX_PLAIN_BYTES:
            raise FormatError(f"section {number} at byte {place} has {stored} bytes, {len(block) - taken} are left")
        if total > FREE_PLAIN_BYTES and total // MAX_EXPANSION > taken + stored:
            raise FormatError(
                f"section {number} at byte {place} ends at {total} bytes, of which {taken + stored} are stored"
            )
        try:
            data = _read(section, block[taken : taken + stored], width, units, length)
        except FormatError as error:
            raise FormatError(f"section {number} at byte {place}: {error.message}") from None
        if len(data) != section.plain:
            raise FormatError(f"section {number} at byte {place} has {len(data)} bytes, not {section.plain}")
        sections.append(section)
        plain.append(data + bytes(-len(data) % ALIGNMENT))
        end = taken + stored
        taken = len(block) if number == count - 1 else taken + -(-stored // WORD) * WORD
        if any(block[end:taken]):
            raise FormatError(f"section {number} at byte {place} is followed by bytes of no section")
    return tuple(sections), b"".join(plain)


def _check_section(fields: dict[str, int], width: int, units: int, length: int, where: str) -> Section:
    try:
        fields["storage"], fields["packing"] = Storage(fields["storage"]), Packing(fields["packing"])
    except ValueError:
        raise FormatError(f"{where} is of an unknown kind") from None
    section = Section(**fields)  # type: ignore[arg-type]
    form = SECTION_FORMS[section.storage]
    good = section.packing in form.packings and form.least <= section.parameter <= form.most and width in form.widths
    good = good and all((fields[name] > 0) == (name in form.sizes) for name in SECTION_SIZES)
    if good and section.storage is Storage.RAW:
        good = section.stored == section.plain
    elif good and section.storage is Storage.COLUMNS:
        row = 4 * section.parameter
        good = section.plain % row == 0 and section.channels <= section.plain // row
    elif good:
        good = section.order(units, length).plain_bytes == section.plain <= MAX_PLAIN_BYTES
        good = good and (section.storage is not Storage.GROUPS or (1 << section.parameter) % length == 0)
    if not good:
        raise FormatError(f"{where} does not describe its {section.plain} bytes")
    return section
