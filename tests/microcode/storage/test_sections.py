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
from openneutron.microcode.instructions import Dma, Program, TensorRow, Wait
from openneutron.microcode.storage.sections import Section, Sizes, choose, flat, raw, read_sections
from openneutron.microcode.table import ElementType, Region, Storage
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
    assert Sizes(program.sections).stored(0, size) == whole <= size


def test_a_part_of_a_section_counts_in_proportion() -> None:
    coded = Section(Storage.PACKED, 100, stored=50)
    sizes = Sizes((coded, raw(20), coded))
    assert sizes.stored(0, 100) == 50 and sizes.stored(10, 5) == 3
    assert sizes.stored(100, 12) == 0  # between two sections
    assert sizes.stored(112, 20) == 20 and sizes.stored(90, 100) == 5 + 20 + 23
    assert sizes.stored(300, 10) == 0 and Sizes(()).stored(0, 10) == 0


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
