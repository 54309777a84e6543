"""Whole weights blocks: what is written is what the driver, the tools and the certificate's checker read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openneutron.certify.read.storage import plain_weights
from openneutron.certify.refused import Refused
from openneutron.compiler.back.predict import predict
from openneutron.errors import FormatError, RuntimeFailure
from openneutron.machine import targets
from openneutron.machine.simulator import Simulator
from openneutron.microcode.decode import decode
from openneutron.microcode.encode import checksum_of, encode_blocks
from openneutron.microcode.header import pack
from openneutron.microcode.instructions import Dma, Program, TensorRow, Wait
from openneutron.microcode.storage.sections import Section, Sizes, choose, flat, raw, read_sections
from openneutron.microcode.storage.words import pack_words, unpack_words
from openneutron.microcode.table import SECTION, ElementType, Packing, Region, Storage
from tests.microcode.storage.samples import LENGTH, UNITS, sections


def program_of(found: tuple[Section, ...], plain: bytes, *more: Dma) -> Program:
    """Microcode that copies region WEIGHTS to its output: what the driver decoded can be seen. Then further copies."""
    target = targets.load("imxrt700")
    rows = (TensorRow(True, 0, ElementType.UINT8, (len(plain),), len(plain)),)
    copy = Dma(0, Region.WEIGHTS, 0, Region.OUTPUT, 0, 0, len(plain))
    return Program(
        target.name, target.hw_version, target.cores, UNITS, LENGTH, (0, 1, 0), rows, (copy, Wait(0), *more), plain, bytes(4),
        0, sections=found, packed=True,
    )  # fmt: skip


@settings(max_examples=25)
@given(sections())
def test_driver_decoder_and_checker_agree(made: tuple[tuple[Section, ...], bytes]) -> None:
    program = program_of(*made)
    microcode, stored = encode_blocks(program)
    assert decode(microcode, stored, program.kernels) == program
    with Simulator(microcode, stored, program.kernels) as simulator:
        assert simulator.run([])[0].tobytes() == program.weights
    words = np.frombuffer(microcode[:128], "<u4")
    place = int(words[23]), int(words[24]), int(words[25])
    assert plain_weights(microcode, stored, *place, (UNITS, LENGTH)) == program.weights


@settings(max_examples=25)
@given(sections(), st.lists(st.tuples(st.integers(0, 2**20), st.integers(1, 2**20)), max_size=4))
def test_copies_are_priced_by_what_they_read(
    made: tuple[tuple[Section, ...], bytes], asked: list[tuple[int, int]]
) -> None:
    """Parts of sections, several at once, and back to earlier ones: the driver and the tools count the same bytes."""
    size = len(made[1])
    places = [(at % size, 1 + count % (size - at % size)) for at, count in asked]
    program = program_of(*made, *(Dma(0, Region.WEIGHTS, 0, Region.OUTPUT, at, 0, count) for at, count in places))
    microcode, stored = encode_blocks(program)
    target = targets.load("imxrt700")
    with Simulator(microcode, stored, program.kernels) as simulator:
        simulator.run([])
        assert simulator.cycles == predict(program, target)[1]
    whole = sum(section.stored for section in program.sections)
    assert Sizes(program.sections).coded_bytes(0, size) == whole <= size


def test_a_part_of_a_section_counts_in_proportion() -> None:
    coded = Section(Storage.PACKED, 100, stored=50)
    sizes = Sizes((coded, raw(20), coded))
    assert sizes.coded_bytes(0, 100) == 50 and sizes.coded_bytes(10, 5) == 3
    assert sizes.coded_bytes(100, 12) == 0  # between two sections
    assert sizes.coded_bytes(112, 20) == 20 and sizes.coded_bytes(90, 100) == 5 + 20 + 23
    assert sizes.coded_bytes(300, 10) == 0 and Sizes(()).coded_bytes(0, 10) == 0


@settings(max_examples=40)
@given(sections(), st.data())
def test_damage_is_refused_or_decoded_the_same_way(
    made: tuple[tuple[Section, ...], bytes], data: st.DataObject
) -> None:
    """With a checksum that fits, a changed bit is found by all three or means the same to all three."""
    program = program_of(*made)
    microcode, stored = map(bytearray, encode_blocks(program))
    sections_at = int(np.frombuffer(bytes(microcode[:128]), "<u4")[23])
    block, first = (stored, 0) if data.draw(st.booleans()) else (microcode, sections_at)
    at = data.draw(st.integers(first, len(block) - 1))
    block[at] ^= 1 << data.draw(st.integers(0, 7))
    microcode[156:160] = bytes(4)
    microcode[156:160] = checksum_of(bytes(microcode), bytes(stored), program.kernels).to_bytes(4, "little")
    words = np.frombuffer(bytes(microcode[:128]), "<u4")
    place = int(words[23]), int(words[24])
    found: list[bytes | None] = []
    try:
        with Simulator(bytes(microcode), bytes(stored), program.kernels) as simulator:
            found.append(simulator.run([])[0].tobytes())
    except RuntimeFailure:
        found.append(None)
    try:
        found.append(plain_weights(bytes(microcode), bytes(stored), *place, int(words[25]), (UNITS, LENGTH)))
    except Refused:
        found.append(None)
    assert found[0] == found[1]
    try:
        plain = read_sections(bytes(microcode), *place, bytes(stored), UNITS, LENGTH)[1]
    except FormatError:
        return
    # The tools' reader leaves out checks of what is behind the last code.
    assert found[0] is None or found[0] == plain


def test_the_smallest_form_is_chosen() -> None:
    rng = np.random.default_rng(0)
    uniform = rng.integers(-128, 128, 4096).astype(np.int8).tobytes()
    assert choose(flat(4096), uniform, UNITS, LENGTH).storage is Storage.RAW
    sparse = np.where(rng.random(4096) < 0.95, 0, 5).astype(np.int8).tobytes()
    assert choose(flat(4096), sparse, UNITS, LENGTH).storage is Storage.STATIC
    few = np.array([1, -1, 0, 1] * 8, np.int8).tobytes()
    assert choose(flat(32), few, UNITS, LENGTH).storage is Storage.RICE


@pytest.mark.parametrize("size", [0, 5, 16])
def test_a_short_block_is_refused(size: int) -> None:
    plain = bytes(64)
    program = program_of((choose(flat(64), b"\1" * 64, UNITS, LENGTH),), plain)
    microcode, stored = encode_blocks(program)
    words = np.frombuffer(microcode[:128], "<u4")
    if size < len(stored):
        with pytest.raises(FormatError):
            read_sections(microcode, int(words[23]), 2, stored[:size], UNITS, LENGTH)


def _answers(program: Program, record: dict[str, int]) -> list[bytes | None]:
    """What driver, tools and checker make of a block whose one record is this; None where one refuses it."""
    microcode, stored = map(bytearray, encode_blocks(program))
    words = np.frombuffer(bytes(microcode[:128]), "<u4")
    place, size = int(words[23]), int(words[25])
    packed = pack(SECTION, **record)
    # Words of four bytes each: every record fits where the table is the last thing of the block.
    table = pack_words([int.from_bytes(packed[at : at + 4], "little") for at in range(0, len(packed), 4)], (4,) * 7)
    before = len(unpack_words_bytes(bytes(microcode), place))
    microcode[place : place + before] = table
    grown = len(table) - before
    for word in (4, 5, 16, 21):  # what lies behind the table moves
        at = int(words[word])
        if at > place:
            microcode[4 * word : 4 * word + 4] = (at + grown).to_bytes(4, "little")
    microcode += bytes(-len(microcode) % 4)
    microcode[24:28] = len(microcode).to_bytes(4, "little")
    identity = int.from_bytes(microcode[16:20], "little")
    microcode[identity + 28 : identity + 32] = bytes(4)
    crc = checksum_of(bytes(microcode), bytes(stored), program.kernels)
    microcode[identity + 28 : identity + 32] = crc.to_bytes(4, "little")
    data, block = bytes(microcode), bytes(stored)
    made: list[bytes | None] = []
    try:
        with Simulator(data, block, program.kernels) as simulator:
            made.append(simulator.run([])[0].tobytes())
    except RuntimeFailure:
        made.append(None)
    try:
        made.append(bytes(read_sections(data, place, 1, block, UNITS, LENGTH)[1]))
    except FormatError:
        made.append(None)
    try:
        made.append(plain_weights(data, block, place, 1, size, (UNITS, LENGTH)))
    except Refused:
        made.append(None)
    return made


def unpack_words_bytes(microcode: bytes, at: int) -> bytes:
    """The bytes of the first record of a section table."""
    return microcode[at : unpack_words(microcode, at, 7)[1]]


@pytest.mark.parametrize("storage", range(6))
def test_all_three_take_the_same_records(storage: int) -> None:
    """Every packing, parameter and width, of a section that is otherwise described right."""
    rng = np.random.default_rng(storage)
    order = Section(Storage.PACKED, 64, Packing.DENSE, groups=1, channels=8, taps=1, inputs=8)
    plain = {
        Storage.COLUMNS: np.repeat(np.arange(2, dtype="<i4"), 8).tobytes(),
        Storage.RICE: rng.integers(-1, 2, 64).astype(np.int8).tobytes(),
        Storage.STATIC: rng.choice([-100, 100], 64).astype(np.int8).tobytes(),
    }.get(Storage(min(storage, 4)), rng.integers(-128, 128, 64).astype(np.int8).tobytes())
    right = {
        Storage.RAW: raw(64),
        Storage.COLUMNS: Section(Storage.COLUMNS, 64, Packing.LANES, 2, channels=8, stored=16),
        Storage.RICE: order._replace(storage=Storage.RICE, parameter=0),
        Storage.STATIC: order._replace(storage=Storage.STATIC),
    }.get(Storage(min(storage, 4)), order)
    program = program_of((right,), plain)
    microcode, block = encode_blocks(program)
    (known,), _ = read_sections(microcode, int.from_bytes(microcode[92:96], "little"), 1, block, UNITS, LENGTH)
    base = {"storage": storage, "plain": 64, "stored": known.stored, "groups": right.groups, "channels": right.channels,
            "taps": right.taps, "inputs": right.inputs}  # fmt: skip
    taken = 0
    for packing in range(5):
        for parameter in (*range(11), 255):
            for width in range(6):
                found = _answers(program, {**base, "packing": packing, "parameter": parameter, "width": width})
                assert len(set(found)) == 1, (storage, packing, parameter, width, found)
                taken += found[0] is not None
    assert (taken > 0) == (storage < 5)


@pytest.mark.parametrize("name", ["groups", "channels", "taps", "inputs"])
@pytest.mark.parametrize("storage", [Storage.RAW, Storage.COLUMNS])
def test_sizes_that_mean_nothing_are_refused_by_all(storage: Storage, name: str) -> None:
    plain = bytes(64)
    right = raw(64) if storage is Storage.RAW else Section(storage, 64, Packing.LANES, 2, channels=8, stored=16)
    record = {"storage": int(storage), "packing": int(right.packing), "parameter": right.parameter, "plain": 64,
              "stored": 64 if storage is Storage.RAW else 16, "channels": right.channels}  # fmt: skip
    program = program_of((right,), plain)
    assert _answers(program, record) == [plain] * 3
    assert _answers(program, record | {name: 0 if record.get(name) else 1}) == [None] * 3
