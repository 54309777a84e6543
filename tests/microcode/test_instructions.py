"""Encoder, decoder and disassembler come from one table and agree."""

from __future__ import annotations

import pytest

from openneutron.compiler import kernels
from openneutron.errors import FormatError
from openneutron.microcode import abi, header, table
from openneutron.microcode.decode import decode
from openneutron.microcode.disassemble import disassemble
from openneutron.microcode.encode import encode
from openneutron.microcode.instructions import ABSENT, Call, Dma, Loop, Operand, Program, TensorRow, Wait
from openneutron.microcode.table import ElementType, Region, Rounding
from tests.compiler.graphs import conv_params

kernels.rules()


def _operand(region: Region, offset: int = 0, ring: int = 8) -> Operand:
    return Operand(region, 0, ElementType.INT8, offset, 2048, 256, 8, ring, 1, 8, 32, 8)


def _program(**changes: object) -> Program:
    conv = abi.by_id(1)
    inputs = {"input": _operand(Region.INPUT), "output": _operand(Region.OUTPUT, ring=3)}
    weights = Operand(Region.WEIGHTS, 0, ElementType.UINT8, 0, 64, 64, 64, 1, 1, 1, 1, 64)
    operands = tuple(ABSENT if r.endswith("?") else inputs.get(r, weights) for r in conv.operands)
    call = Call(conv.id, conv.abi, Rounding.DOUBLE, 0, -2, 1, 1, operands, conv_params(3, 1, 1))
    values: dict[str, object] = {
        "target": "imxrt700", "hw_version": 2, "cores": 1, "units": 8, "length": 8, "converter_version": (1, 2, 3),
        "tensors": (
            TensorRow(False, 0, ElementType.INT8, (1, 8, 32, 8), 2048, 0.5, -3),
            TensorRow(True, 0, ElementType.INT8, (1, 8, 32, 8), 2048, 0.25, 4),
        ),
        "instructions": (
            Dma(1, Region.WEIGHTS, 0, Region.PREFETCH, 0, 16, 32), Wait(1), Loop(10, (call,)), call,
        ),
        "weights": bytes(range(64)), "kernels": bytes(4), "scratch_bytes": 640, "prefetch_bytes": 48,
    }  # fmt: skip
    return Program(**values | changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("profiling", [False, True])
def test_what_is_encoded_is_decoded(profiling: bool) -> None:
    program = _program(profiling=profiling)
    assert decode(encode(program), program.weights, program.kernels) == program


def test_header_keeps_the_container_words() -> None:
    program = _program()
    words = [int.from_bytes(encode(program)[4 * i : 4 * i + 4], "little") for i in range(16)]
    assert words[0] == 0x64434D6E
    assert words[6:9] == [len(encode(program)), 64, 4]
    assert words[9:13] == [640, 48, 1, 1]
    words = [int.from_bytes(encode(_program(profiling=True))[4 * i : 4 * i + 4], "little") for i in range(16)]
    assert words[9:15] == [640, 16 * program.call_count, 0, 48, 1, 1]


def test_loops_count_in_the_number_of_calls() -> None:
    assert _program().call_count == 11


def test_disassembly_names_kernel_parameters_and_loops() -> None:
    program = _program()
    text = disassemble(decode(encode(program), program.weights, program.kernels))
    for part in (
        "target imxrt700",
        "LOOP  10 times",
        "CALL  conv2d node 0 rows -2+1 step 1",
        "kernel_h=3",
        "DMA   weights+0",
    ):
        assert part in text


def test_flipped_byte_is_named_by_the_checksum() -> None:
    program = _program()
    block = bytearray(encode(program))
    block[-20] ^= 1
    with pytest.raises(FormatError, match="checksum"):
        decode(bytes(block), program.weights, program.kernels)


def test_other_version_word_is_called_foreign() -> None:
    program = _program()
    block = bytearray(encode(program))
    block[4] ^= 0xFF
    with pytest.raises(FormatError, match="NXP's converter"):
        decode(bytes(block), program.weights, program.kernels)


def test_every_single_byte_change_decodes_or_says_why() -> None:
    program = _program()
    block = encode(program)
    for at in range(len(block)):
        for change in (0x01, 0x80, 0xFF):
            broken = bytearray(block)
            broken[at] ^= change
            try:
                decode(bytes(broken), program.weights, program.kernels, verify=False)
            except FormatError as error:
                assert str(error)


@pytest.mark.parametrize("size", [0, 4, 100, 127, 160, 300])
def test_truncated_block_is_refused(size: int) -> None:
    program = _program()
    with pytest.raises(FormatError):
        decode(encode(program)[:size], program.weights, program.kernels)


def test_records_have_no_hidden_padding_and_fill_words() -> None:
    for record in table.RECORDS:
        assert header.size_of(record) % 4 == 0, record.name


def test_kernels_are_numbered_once_and_fit_the_firmware() -> None:
    names = [kernel.name for kernel in abi.all_kernels()]
    assert len(names) == len(set(names))
    for kernel in abi.all_kernels():
        assert len(kernel.operands) <= table.MAX_OPERANDS
        words = sum(item.metadata["size"] for item in kernel.params.__dataclass_fields__.values())
        assert words <= table.MAX_PARAMS, kernel.name
        assert kernel.operands.count("output") == 1
