"""Programs that repeat steps have as many bytes for any number of steps; the others take no more than they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.cli.inputs.blocks import Blocks, blocks_of_file
from openneutron.compiler.kernels.copy import ABI as COPY
from openneutron.compiler.kernels.copy import copy_params
from openneutron.compiler.kernels.reduce import ReduceParams
from openneutron.compiler.numbers.strides import Loop as Stride
from openneutron.compiler.pipeline import compile_model
from openneutron.microcode.abi import least_bytes
from openneutron.microcode.encode import encode_blocks, encode_instruction
from openneutron.microcode.instructions import Call, Dma, Instruction, Loop, Operand, Wait
from openneutron.microcode.storage.words import pack_words
from openneutron.microcode.table import ElementType, Region, Rounding
from openneutron.microcode.widths import widths_of
from openneutron.options import Options
from tests.loops import Loop as While
from tests.recurrent import both_ways, gru, lstm
from tests.stateful import Lstm
from tests.tiny import convnet


def compiled(data: bytes, target: str) -> Blocks:
    (blocks,) = blocks_of_file(compile_model(data, Options(target=target)).model, "model")
    return blocks


# Steps that are written out take their time: these have fewer, but from one byte of a packed word to two.
OVER_STEPS: dict[str, tuple[Callable[[int], bytes], str, tuple[int, ...]]] = {
    "GRU": (gru, "imxrt700", (25, 250)),
    "GRU in the TCM": (gru, "imx95", (10, 130)),
    "GRU from zeros": (lambda steps: gru(steps, zeros=True), "mcxn94x", (10, 130)),
    "sequence, backwards": (lambda steps: gru(steps, sequence=True, backwards=True), "imxrt700", (10, 130)),
    "sequence of a batch, 16 bits": (lambda steps: gru(steps, batch=2, sequence=True, wide=True), "imx95", (10, 130)),
    "both ways": (both_ways, "mcxn94x", (10, 130)),
    "batch first": (lambda steps: gru(steps, batch=2, batch_first=True, sequence=True), "imxrt700", (10, 130)),
    "unrolled LSTM": (lambda steps: lstm(steps, batch=2, sequence=True), "imxrt700", (10, 130)),
    "WHILE": (lambda steps: While(rows=steps).data(), "imxrt700", (25, 250)),
    "WHILE, LSTM": (lambda steps: While(rows=steps, lstm=True).data(), "imx95", (25, 250)),
    "WHILE, 16 bits": (lambda steps: While(rows=steps, wide=True).data(), "mcxn94x", (10, 130)),
    "LSTM": (lambda steps: Lstm(steps=steps).model(), "imxrt700", (10, 25, 250, 2500)),
    "LSTM beyond 32 KB": (lambda steps: Lstm(steps=steps, cells=30, outputs=30).model(), "imx95", (25, 250, 2500)),
}


@pytest.mark.parametrize("name", OVER_STEPS)
def test_microcode_and_weights_do_not_grow_with_the_steps(name: str) -> None:
    made, target, counts = OVER_STEPS[name]
    programs = [compiled(made(steps), target) for steps in counts]
    assert len({(len(blocks.microcode), len(blocks.weights)) for blocks in programs}) == 1
    for blocks in programs:
        assert blocks.program().over_steps
        assert encode_blocks(blocks.program()) == (blocks.microcode, blocks.weights)


@pytest.mark.parametrize("data", [convnet(), Lstm(steps=1).model()], ids=["no steps", "one step"])
def test_other_programs_take_no_more_than_they_need(data: bytes) -> None:
    blocks = compiled(data, "imxrt700")
    program = blocks.program()
    assert not program.over_steps and encode_blocks(program) == (blocks.microcode, blocks.weights)
    assert len(encode_blocks(replace(program, over_steps=True))[0]) > len(blocks.microcode)


def copied(region: Region, offset: int, rows: int, width: int, channels: int, first_row: int) -> Call:
    """A copy whose numbers all hang on those given."""
    pitch = width * channels
    operand = Operand(
        region, 0, ElementType.INT8, offset, rows * pitch, pitch, channels, rows, 1, rows, width, channels
    )
    params = copy_params([Stride(rows, pitch, pitch), Stride(width, channels, 2 * channels), Stride(channels, 1, 1)])
    return Call(COPY.id, COPY.abi, Rounding.NONE, 0, first_row, rows, 1, (operand, operand), params)


def packed(item: Instruction) -> int:
    plain = encode_instruction(item)
    if isinstance(item, Loop):
        plain = plain[:12]
    words = [int.from_bytes(plain[at : at + 4], "little") for at in range(4, len(plain), 4)]
    return len(pack_words(words, widths_of(item)))


COUNTS = st.integers(2, 32_767)
PLACES = st.integers(1, 2**31 - 1)


@given(COUNTS, COUNTS, COUNTS, PLACES, st.sampled_from([Region.SCRATCH, Region.TCM, Region.INPUT, Region.OUTPUT]))
def test_words_of_a_call_have_a_width_of_their_own(
    rows: int, width: int, first_row: int, offset: int, region: Region
) -> None:
    few, many = copied(region, 16, 2, 3, 2, 1 + 1), copied(region, offset, rows, width % 9_000 + 3, 2, first_row)
    assert packed(few) == packed(many)


@given(COUNTS, PLACES, PLACES)
def test_words_of_loops_and_copies_have_a_width_of_their_own(count: int, place: int, size: int) -> None:
    assert packed(Loop(count, ())) == packed(Loop(3, ()))
    few, many = (
        [Dma(1, Region.INPUT, 0, Region.TCM, 0, at, n), Dma(1, Region.TCM, 0, Region.OUTPUT, at, 0, n)]
        for at, n in ((0, 3), (place, size))
    )
    assert list(map(packed, few)) == list(map(packed, many))


def test_what_holds_constants_takes_no_more_than_it_needs() -> None:
    fetched = Dma(0, Region.WEIGHTS, 0, Region.PREFETCH, 16, 0, 300)
    assert widths_of(fetched) == [0, 0, 0, 0] and widths_of(Wait(1)) == [0]
    assert widths_of(copied(Region.WEIGHTS, 5, 3, 3, 3, 0))[5:25] == [0] * 20


def test_numbers_of_calibration_may_be_zero() -> None:
    few = ReduceParams(4, 0, 0, 1 << 30, 0, 0, -128, 127)
    many = replace(few, offset=-150 * 2500, shift=-3, output_zero=6)
    assert least_bytes(few) == least_bytes(many) == [1, 1, 4, 1, 1, 1, 1, 1]


def test_a_first_state_in_shared_memory_may_lie_anywhere() -> None:
    """Where the allocator puts a buffer depends on the sizes of all: 0 is a place like any other."""
    assert packed(copied(Region.SCRATCH, 0, 3, 1, 4, 0)) == packed(copied(Region.SCRATCH, 70_000, 3, 1, 4, 0))
