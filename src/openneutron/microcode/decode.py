"""Microcode bytes → program, with every offset checked."""

from __future__ import annotations

import enum
import struct
from typing import Any, TypeVar

from openneutron.errors import FormatError
from openneutron.microcode import abi
from openneutron.microcode.encode import checksum_of
from openneutron.microcode.header import offset_of, size_of, unpack
from openneutron.microcode.instructions import (
    Call,
    Dma,
    Instruction,
    Loop,
    Operand,
    Program,
    StateRow,
    Step,
    TensorRow,
    Wait,
)
from openneutron.microcode.storage.sections import Section, read_sections
from openneutron.microcode.storage.words import pack_words, unpack_words
from openneutron.microcode.table import (
    BODIES,
    CALL,
    HEADER,
    IDENTITY,
    INSTRUCTION,
    MAGIC,
    MAX_RANK,
    OPERAND,
    STATE_ROW,
    TENSOR,
    VERSION_WORD,
    ElementType,
    Flag,
    Opcode,
    Region,
    Rounding,
)

E = TypeVar("E", bound=enum.IntEnum)


def _member(kind: type[E], value: int, what: str, at: int) -> E:
    try:
        return kind(value)
    except ValueError:
        raise FormatError(f"{what} {value} at byte {at} is unknown") from None


def header_of(microcode: bytes | memoryview) -> dict[str, Any]:
    """The header's fields; a `FormatError` when this is not open microcode."""
    header = unpack(HEADER, microcode, 0)
    if header["magic"] != MAGIC:
        raise FormatError(f"byte 0 holds 0x{header['magic']:08X} where microcode starts with 0x{MAGIC:08X}")
    if header["version"] != VERSION_WORD:
        raise FormatError(
            f"version word 0x{header['version']:08X} was not written by OpenNeutron (0x{VERSION_WORD:08X})",
            hint="made by NXP's converter: only NXP's runtime runs it, `openneutron inspect` shows its header",
        )
    return header


def _operand(data: bytes | memoryview, at: int) -> Operand:
    raw = unpack(OPERAND, data, at)
    raw.pop("reserved")
    raw["region"] = _member(Region, raw["region"], "region", at)
    raw["dtype"] = _member(ElementType, raw["dtype"], "element type", at + 2)
    return Operand(**raw)


def _call(data: bytes | memoryview, at: int, operands: int, end: int) -> Call:
    raw = unpack(CALL, data, at)
    raw["rounding"] = _member(Rounding, raw["rounding"], "rounding mode", at + 3)
    at += size_of(CALL)
    raw["operands"] = tuple(_operand(data, at + i * size_of(OPERAND)) for i in range(operands))
    at += operands * size_of(OPERAND)
    if at > end:
        raise FormatError(f"CALL before byte {end} is shorter than its {operands} operands")
    words = struct.unpack_from(f"<{(end - at) // 4}i", data, at)
    raw["params"] = abi.params_from_words(abi.by_id(raw["kernel"]), list(words))
    return Call(**raw)


def _decode_steps(data: bytes | memoryview, at: int, end: int, inside_loop: bool) -> list[Instruction]:
    found: list[Instruction] = []
    while at < end:
        head = unpack(INSTRUCTION, data, at)
        opcode = _member(Opcode, head["opcode"], "opcode", at)
        stop = at + 4 * head["words"]
        if head["words"] == 0 or stop > end:
            raise FormatError(f"instruction at byte {at} has {head['words']} words, {(end - at) // 4} are left")
        body = at + size_of(INSTRUCTION)
        if opcode is Opcode.END:
            if inside_loop or stop != end:
                raise FormatError(f"END at byte {at} is not the last instruction")
            return found
        if opcode is Opcode.CALL:
            found.append(_call(data, body, head["operands"], stop))
        elif opcode is Opcode.DMA:
            raw = unpack(BODIES[opcode], data, body)
            for name in ("source_region", "target_region"):
                raw[name] = _member(Region, raw[name], "region", body)
            found.append(Dma(**raw))
        elif opcode is Opcode.WAIT:
            found.append(Wait(**unpack(BODIES[opcode], data, body)))
        else:
            raw = unpack(BODIES[opcode], data, body)
            if inside_loop:
                raise FormatError(f"LOOP at byte {at} is nested")
            body_end = stop + 4 * raw["body_words"]
            if body_end > end:
                raise FormatError(f"LOOP at byte {at} has a body of {raw['body_words']} words, too long")
            steps: list[Step] = []
            for step in _decode_steps(data, stop, body_end, True):
                assert not isinstance(step, Loop)
                steps.append(step)
            found.append(Loop(raw["iterations"], tuple(steps)))
            stop = body_end
        at = stop
    if not inside_loop:
        raise FormatError(f"no END before byte {end}")
    return found


def _unpack_instructions(data: bytes | memoryview, at: int, end: int) -> tuple[bytes, bool]:
    """Unpack instructions, END included; also returns whether some take more bytes than they need.

    Bytes after END are padding.
    """
    code = bytearray()
    wider = False
    while True:
        head = unpack(INSTRUCTION, data[:end], at)
        if head["words"] == 0:
            raise FormatError(f"instruction at byte {at} has no words")
        words, stop = unpack_words(data[:end], at + size_of(INSTRUCTION), head["words"] - 1)
        code += data[at : at + size_of(INSTRUCTION)]
        code += struct.pack(f"<{len(words)}i", *words)
        wider = wider or len(pack_words(words)) < stop - at - size_of(INSTRUCTION)
        if head["opcode"] == Opcode.END:
            return bytes(code), wider
        at = stop


def _tensor(data: bytes | memoryview, at: int) -> TensorRow:
    raw = unpack(TENSOR, data, at)
    if raw["rank"] > MAX_RANK:
        raise FormatError(f"tensor at byte {at} has rank {raw['rank']}, at most {MAX_RANK}")
    scale = struct.unpack("<f", struct.pack("<I", raw["scale"]))[0]
    dtype = _member(ElementType, raw["dtype"], "element type", at + 2)
    shape = tuple(raw["dims"][: raw["rank"]])
    return TensorRow(bool(raw["kind"]), raw["index"], dtype, shape, raw["bytes"], scale, raw["zero_point"])


def tensors_of(microcode: bytes) -> tuple[TensorRow, ...]:
    """The table of inputs and outputs, without looking at the code."""
    header = header_of(microcode)
    first = header["tensors_offset"]
    return tuple(_tensor(microcode, first + i * size_of(TENSOR)) for i in range(header["tensor_count"]))


def _version(word: int) -> tuple[int, int, int]:
    return word >> 16, word >> 8 & 0xFF, word & 0xFF


def decode(microcode: bytes, weights: bytes = b"", kernels: bytes = b"", *, verify: bool = True) -> Program:
    """The program in a microcode block; with `verify` the checksum over all three blocks must match."""
    header = header_of(microcode)
    if header["microcode_bytes"] > len(microcode):
        raise FormatError(f"header says {header['microcode_bytes']} bytes of microcode, {len(microcode)} are here")
    identity = unpack(IDENTITY, microcode, header["identity_offset"])
    if verify:
        at = header["identity_offset"] + offset_of(IDENTITY, "checksum")
        zeroed = microcode[:at] + bytes(4) + microcode[at + 4 : header["microcode_bytes"]]
        found = checksum_of(zeroed, weights, kernels)
        if found != identity["checksum"]:
            raise FormatError(f"checksum is 0x{found:08X}, the identity block says 0x{identity['checksum']:08X}")
    profiling = bool(header["flags"] & Flag.PROFILING)
    tensors = tensors_of(microcode)
    states = tuple(
        StateRow(**unpack(STATE_ROW, microcode, header["states_offset"] + i * size_of(STATE_ROW)))
        for i in range(header["state_count"])
    )
    start = header["code_offset"]
    packed = bool(header["flags"] & Flag.PACKED)
    over_steps = False
    if packed:
        code, over_steps = _unpack_instructions(microcode, start, start + header["code_bytes"])
        steps = _decode_steps(code, 0, len(code), False)
    else:
        steps = _decode_steps(microcode, start, start + header["code_bytes"], False)
    sections: tuple[Section, ...] = ()
    if header["section_count"] and weights:
        place = header["sections_offset"], header["section_count"]
        sections, weights = read_sections(microcode, *place, weights, identity["units"], identity["length"])
        if len(weights) != header["plain_bytes"]:
            raise FormatError(f"sections of {len(weights)} bytes, the header says {header['plain_bytes']}")
    return Program(
        target=identity["target"].rstrip(b"\0").decode("ascii", "replace"),
        hw_version=identity["hw_version"],
        cores=identity["cores"],
        units=identity["units"],
        length=identity["length"],
        converter_version=_version(identity["converter_version"]),
        tensors=tensors,
        instructions=tuple(steps),
        weights=weights,
        kernels=kernels,
        scratch_bytes=header["layout"][0],
        prefetch_bytes=header["layout"][3 if profiling else 1],
        tcm_bytes=header["tcm_bytes"],
        profiling=profiling,
        states=states,
        solver_version=_version(identity["solver_version"]),
        sections=sections,
        packed=packed,
        over_steps=over_steps,
        checksum=identity["checksum"],
    )
