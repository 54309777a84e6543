"""Program → microcode bytes."""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left, bisect_right

from openneutron.microcode import abi
from openneutron.microcode.header import pack, pack_in_order, size_of
from openneutron.microcode.instructions import Call, Dma, Instruction, Loop, Operand, Program, StateRow, TensorRow, Wait
from openneutron.microcode.storage.sections import write_sections
from openneutron.microcode.storage.words import pack_words
from openneutron.microcode.table import (
    ALIGNMENT,
    CALL,
    DMA,
    FORMAT_VERSION,
    HEADER,
    HEADER_BYTES,
    IDENTITY,
    INSTRUCTION,
    LOOP,
    MAGIC,
    OPERAND,
    STATE_ROW,
    TENSOR,
    VERSION_WORD,
    WAIT,
    Flag,
    Opcode,
    Region,
    Storage,
)
from openneutron.microcode.widths import SECTION_WIDTHS, widths_of

PROFILE_RECORD_BYTES = 16  # one start/stop pair (interfaces: delegate payload)


def version_word(version: tuple[int, int, int]) -> int:
    """major << 16 | minor << 8 | patch."""
    return version[0] << 16 | version[1] << 8 | version[2]


def align(size: int, to: int = ALIGNMENT) -> int:
    """The next multiple of `to`."""
    return -(-size // to) * to


def _operand(o: Operand) -> bytes:
    return pack_in_order(OPERAND, *o[:3], 0, *o[3:])  # behind the first three is a reserved byte


def _frame(opcode: Opcode, body: bytes, operands: int = 0) -> bytes:
    words = (size_of(INSTRUCTION) + len(body)) // 4
    return pack(INSTRUCTION, opcode=int(opcode), operands=operands, words=words) + body


def encode_call(call: Call) -> bytes:
    """One CALL instruction; the machine model prices the same bytes."""
    words = abi.param_words(call.params)
    head = pack(
        CALL, kernel=call.kernel, abi=call.abi, rounding=int(call.rounding), tag=call.tag,
        first_row=call.first_row, rows=call.rows, row_step=call.row_step,
    )  # fmt: skip
    operands = b"".join(_operand(o) for o in call.operands)
    return _frame(Opcode.CALL, head + operands + struct.pack(f"<{len(words)}i", *words), len(call.operands))


def encode_instruction(item: Instruction) -> bytes:
    """One instruction, a loop with its body."""
    if isinstance(item, Call):
        return encode_call(item)
    if isinstance(item, Dma):
        return _frame(
            Opcode.DMA,
            pack(
                DMA, channel=item.channel, source_region=int(item.source_region), source_index=item.source_index,
                target_region=int(item.target_region), source_offset=item.source_offset,
                target_offset=item.target_offset, bytes=item.bytes,
            ),
        )  # fmt: skip
    if isinstance(item, Wait):
        return _frame(Opcode.WAIT, pack(WAIT, channel=item.channel))
    body = b"".join(encode_instruction(step) for step in item.body)
    return _frame(Opcode.LOOP, pack(LOOP, iterations=item.iterations, body_words=len(body) // 4)) + body


def _tensor(row: TensorRow) -> bytes:
    scale = struct.unpack("<I", struct.pack("<f", row.scale))[0]
    return pack(
        TENSOR, kind=int(row.is_output), index=row.index, dtype=int(row.dtype), rank=len(row.shape), bytes=row.bytes,
        zero_point=row.zero_point, scale=scale, dims=row.shape,
    )  # fmt: skip


def _state(row: StateRow) -> bytes:
    return pack(STATE_ROW, offset=row.offset, bytes=row.bytes, source=row.source, fill=row.fill)


def _pack(item: Instruction, over_steps: bool) -> bytes:
    """Return the instruction's first word, then its other words packed, then a loop's body."""
    plain, body = encode_instruction(item), b""
    if isinstance(item, Loop):
        plain = plain[: size_of(INSTRUCTION) + size_of(LOOP)]
        body = b"".join(_pack(step, over_steps) for step in item.body)
    words = struct.unpack_from(f"<{len(plain) // 4 - 1}I", plain, 4)
    return plain[: size_of(INSTRUCTION)] + pack_words(words, widths_of(item) if over_steps else ()) + body


def _code(program: Program) -> bytes:
    items = program.instructions
    parts = [_pack(item, program.over_steps) if program.packed else encode_instruction(item) for item in items]
    code = b"".join(parts) + _frame(Opcode.END, b"")
    return code.ljust(align(len(code), 4), b"\0")


def encode(program: Program) -> bytes:
    """The microcode block of a program, its checksum computed over microcode, weights and kernels as they are stored.

    Example:
        >>> decode(encode(program), encode_blocks(program)[1], program.kernels) == program
        True
    """
    return encode_blocks(program)[0]


def encode_blocks(program: Program, room: tuple[int, int] = (0, 0)) -> tuple[bytes, bytes]:
    """The microcode and the weights block as they are stored, each of at least so many bytes.

    Example:
        >>> microcode, weights = encode_blocks(program)
    """
    weights, sections = program.weights, b""
    if program.sections:
        least = SECTION_WIDTHS if program.over_steps and program.packed else ()
        weights, sections = write_sections(program.sections, program.weights, program.units, program.length, least)
    weights = weights.ljust(room[1], b"\0")
    code = _code(program)
    inputs = sum(not t.is_output for t in program.tensors)
    outputs = len(program.tensors) - inputs
    identity_at = HEADER_BYTES
    tensors_at = identity_at + size_of(IDENTITY)
    states_at = tensors_at + size_of(TENSOR) * len(program.tensors)
    code_at = states_at + size_of(STATE_ROW) * len(program.states)
    sections_at = code_at + len(code)
    total = max(align(sections_at + len(sections)), room[0])
    if program.profiling:
        profile = PROFILE_RECORD_BYTES * program.call_count
        words = [program.scratch_bytes, profile, 0, program.prefetch_bytes, inputs, outputs]
    else:
        words = [program.scratch_bytes, program.prefetch_bytes, inputs, outputs, program.call_count, 0]
    header = pack(
        HEADER, magic=MAGIC, version=VERSION_WORD, header_bytes=HEADER_BYTES,
        flags=Flag.PROFILING * program.profiling | Flag.PACKED * program.packed, identity_offset=identity_at,
        tensors_offset=tensors_at, microcode_bytes=total, weights_bytes=len(weights), kernels_bytes=len(program.kernels),
        layout=words, tensor_count=len(program.tensors), code_offset=code_at, code_bytes=len(code),
        call_count=program.call_count, tcm_bytes=program.tcm_bytes, state_bytes=program.state_bytes,
        states_offset=states_at if program.states else 0, state_count=len(program.states),
        sections_offset=sections_at if program.sections else 0, section_count=len(program.sections),
        plain_bytes=len(program.weights) if program.sections else 0, window_bytes=window_bytes(program),
    )  # fmt: skip

    def block(checksum: int) -> bytes:
        identity = pack(
            IDENTITY, target=program.target.encode("ascii"), format_version=FORMAT_VERSION,
            converter_version=version_word(program.converter_version),
            solver_version=version_word(program.solver_version), checksum=checksum, hw_version=program.hw_version,
            cores=program.cores, units=program.units, length=program.length,
        )  # fmt: skip
        tensors = b"".join(_tensor(row) for row in program.tensors)
        states = b"".join(_state(row) for row in program.states)
        return (header + identity + tensors + states + code + sections).ljust(total, b"\0")

    return block(checksum_of(block(0), weights, program.kernels)), weights


class _CodedSections:
    """Plain bytes of coded sections, by their place in region WEIGHTS."""

    def __init__(self, program: Program) -> None:
        self._firsts: list[int] = []  # in order, so that those of a place are bisected
        self._lasts: list[int] = []
        at = 0
        for section in program.sections:
            if section.storage is not Storage.RAW:
                self._firsts.append(at)
                self._lasts.append(at + align(section.plain))
            at += align(section.plain)

    def largest(self, start: int, size: int) -> int:
        """Return the bytes of the largest section of a range."""
        among = range(bisect_right(self._lasts, start), bisect_left(self._firsts, start + size))
        return max((self._lasts[one] - self._firsts[one] for one in among), default=0)

    def around(self, start: int) -> int:
        """Return the bytes of the section at a place; 0 where it is not coded."""
        one = bisect_right(self._firsts, start) - 1
        return self._lasts[one] - self._firsts[one] if one >= 0 and start < self._lasts[one] else 0

    def of_call(self, call: Call) -> int:
        """Return the bytes of the sections that a call reads."""
        return sum(self.around(o.offset) for o in call.operands if o.region is Region.WEIGHTS and o.channels)


def window_bytes(program: Program) -> int:
    """Return the window size for decoding call by call: the most plain bytes of coded sections that one call, copy or
    initial state reads."""
    coded = _CodedSections(program)
    most = max((coded.largest(row.source, row.bytes) for row in program.states), default=0)  # NO_SOURCE is behind all
    for item in program.instructions:
        for step in item.body if isinstance(item, Loop) else (item,):
            if isinstance(step, Call):
                most = max(most, coded.of_call(step))
            elif isinstance(step, Dma) and step.source_region is Region.WEIGHTS:
                most = max(most, coded.largest(step.source_offset, step.bytes))
    return most


def layer_window_bytes(program: Program) -> int:
    """Return the window size with which each layer is decoded once: a loop's calls stay there, each behind ALIGNMENT bytes."""
    coded = _CodedSections(program)
    most = window_bytes(program)
    for item in program.instructions:
        if isinstance(item, Loop):
            sizes = [size for step in item.body if isinstance(step, Call) and (size := coded.of_call(step))]
            most = max(most, sum(sizes) + ALIGNMENT * len(sizes) * (len(sizes) > 1))
    return most


def checksum_of(microcode: bytes, weights: bytes, kernels: bytes) -> int:
    """CRC-32 over the three blocks, the checksum field of the microcode being zero."""
    return zlib.crc32(kernels, zlib.crc32(weights, zlib.crc32(microcode)))
