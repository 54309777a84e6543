"""Decodes microcode (docs/format.md), independent of the compiler's decoder: header, identity, tensors, instructions."""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Any

from openneutron.certify.published import KERNELS, TARGETS
from openneutron.certify.read.layout import check_counts, check_kernels, check_layout
from openneutron.certify.read.storage import read_sections, unpack_words
from openneutron.certify.refused import Refused

REGIONS = ("input", "output", "scratch", "weights", "prefetch", "tcm", "state")
DTYPES = ("INT8", "UINT8", "INT16", "INT32", "INT64", "FLOAT32", "BOOL")
ITEM = (1, 1, 2, 4, 8, 4, 1)
_CHANNELS = 16  # of the copy engine
_WORDS = {0: 1, 2: 5, 3: 2, 4: 3}  # of an END, a copy, a wait, a loop
_MOST_STATE = 1 << 26  # bytes: a small file may state a huge state
_MAGIC, _VERSION, _HEADER = 0x64434D6E, 0x4F4E0001, 128
_OPERAND = struct.Struct("<4B9I")
_CALL = struct.Struct("<H2BIiIi")


@dataclass(frozen=True)
class Operand:
    """Row y of image n starts at offset + n*plane + (y mod ring)*pitch of its region."""

    region: str
    index: int
    dtype: int
    offset: int
    plane: int
    pitch: int
    pixel: int
    ring: int
    batch: int
    height: int
    width: int
    channels: int

    @property
    def present(self) -> bool:
        """Whether the operand is given; optional ones may be absent."""
        return self.channels != 0

    @property
    def item(self) -> int:
        """Size of one element in bytes."""
        return ITEM[self.dtype]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, height, width and channels."""
        return self.batch, self.height, self.width, self.channels


@dataclass(frozen=True)
class Call:
    """One kernel call; `at` is its byte in the microcode block."""

    at: int
    kernel: str
    rounding: int
    tag: int
    first_row: int
    rows: int
    row_step: int
    operands: dict[str, Operand]
    params: dict[str, Any]

    @property
    def output(self) -> Operand:
        """The operand that is written."""
        return self.operands["output"]


@dataclass(frozen=True)
class Copy:
    """A copy between two regions that runs in the background."""

    at: int
    channel: int
    source: tuple[str, int, int]
    target: tuple[str, int, int]
    size: int


@dataclass(frozen=True)
class Wait:
    """A wait for all copies of a channel."""

    at: int
    channel: int


@dataclass(frozen=True)
class Loop:
    """A body that runs several times."""

    at: int
    iterations: int
    body: tuple[Call | Copy | Wait, ...]


@dataclass(frozen=True)
class State:
    """Bytes kept between runs, with their contents before the first run."""

    offset: int
    initial: bytes
    source: int | None = None  # position of the contents in region WEIGHTS


@dataclass(frozen=True)
class Program:
    """A decoded microcode block, with the sizes of its regions and the contents of region WEIGHTS."""

    target: str
    units: int
    length: int
    sizes: dict[tuple[str, int], int]
    tensors: tuple[dict[str, Any], ...]
    steps: tuple[Call | Copy | Wait | Loop, ...]
    calls: int
    states: tuple[State, ...] = ()
    weights: bytes = b""
    profiling: bool = False
    version: int = 0  # of the compiler, a byte each for minor and patch


def _word(block: bytes, at: int) -> int:
    if at + 4 > len(block):
        raise Refused("the microcode ends too early", at)
    return int.from_bytes(block[at : at + 4], "little")


def is_foreign(block: bytes | memoryview) -> bool:
    """Return whether this is another microcode format; the open one begins with its magic number and version."""
    return bytes(block[:8]) != struct.pack("<2I", _MAGIC, _VERSION)


def decode(block: bytes, weights: bytes, kernels: bytes, most: int) -> Program:
    """Decode three blocks to a program, and check everything in it against the published tables.

    Region WEIGHTS may have at most `most` bytes: a few stored bytes may describe gigabytes of zeros.
    """
    words = [_word(block, 4 * at) for at in range(_HEADER // 4)]
    if words[0] != _MAGIC or words[1] != _VERSION or words[2] != _HEADER:
        raise Refused("this is no open microcode", 0)
    flags, identity, table = words[3], words[4], words[5]
    for at, (stated, size) in enumerate(((words[6], len(block)), (words[7], len(weights)), (words[8], len(kernels)))):
        if stated != size:
            raise Refused(f"a block of {stated} bytes has {size}", 24 + 4 * at)
    _checksum(block, weights, kernels, identity)
    target = block[identity : identity + 16].rstrip(b"\0").decode(errors="replace")
    if target not in TARGETS:
        raise Refused(f"target {target!r} is not published", identity)
    chip = TARGETS[target]
    described = struct.unpack_from("<4I", block, identity + 32)
    if described != (chip["hw_version"], chip["cores"], chip["units"], chip["length"]):
        raise Refused(f"{target} is described as {described}", identity + 32)
    coded: list[tuple[int, int]] = []
    sections_end = 0
    if words[24]:
        if words[25] > most:
            raise Refused(f"constants of {words[25]} bytes, which no schedule of the source needs", 100)
        place = words[23], words[24], words[25]
        weights, coded, sections_end = read_sections(block, weights, *place, (chip["units"], chip["length"]))
    layout = words[9:15]
    scratch, prefetch = (layout[0], layout[3]) if flags & 1 else (layout[0], layout[1])
    tensors = _tensors(block, table, words[15])
    sizes = {("scratch", 0): scratch, ("prefetch", 0): prefetch, ("tcm", 0): words[19], ("weights", 0): len(weights)}
    if words[20] > _MOST_STATE:
        raise Refused(f"a state of {words[20]} bytes", 80)
    sizes["state", 0] = words[20]
    for one in tensors:
        sizes["output" if one["kind"] else "input", one["index"]] = one["bytes"]
    if scratch + prefetch > chip["sram_bytes"] or words[19] > chip["tcm_bytes"]:
        raise Refused(f"{scratch + prefetch} bytes of memory and {words[19]} of TCM exceed {target}", 36)
    if words[16] + words[17] > len(block):
        raise Refused("the code leaves the block", 64)
    steps, calls = _code(block, words[16], words[16] + words[17], packed=bool(flags & 2))
    if calls != words[18]:
        raise Refused(f"{words[18]} calls are announced, {calls} are made", 72)
    check_layout(block, words, sections_end)
    flat = [step for item in steps for step in (item.body if isinstance(item, Loop) else (item,))]
    called = {step.kernel for step in flat if isinstance(step, Call)}
    numbers = {number for number, row in KERNELS.items() if row[0] in called}
    check_kernels(kernels, numbers, listed=bool(chip["subsystem"]))
    states = _states(block, weights, words[20], words[21], words[22])
    program = Program(
        target, chip["units"], chip["length"], sizes, tensors, steps, calls, states, weights, bool(flags & 1),
        _word(block, identity + 20),
    )  # fmt: skip
    check_counts(words, program, calls, coded)
    return program


def _code(block: bytes, at: int, end: int, *, packed: bool) -> tuple[tuple[Call | Copy | Wait | Loop, ...], int]:
    """Return the instructions, each with its byte in the block, and the number of calls they make."""
    if not packed:
        return _instructions(block[:end], at, end)
    code, starts = _plain_code(block, at, end)
    try:
        steps, calls = _instructions(code, at, len(code))
    except Refused as error:
        raise Refused(error.message, _stored_byte(block, starts, error.offset or 0)) from None
    places = dict(starts)

    def relocate(step: Any) -> Any:
        inner = {"body": tuple(relocate(one) for one in step.body)} if isinstance(step, Loop) else {}
        return replace(step, at=places[step.at], **inner)

    return tuple(relocate(step) for step in steps), calls


def _plain_code(block: bytes, at: int, end: int) -> tuple[bytes, list[tuple[int, int]]]:
    """Return the block up to the end of its code, with packed words expanded, and the positions of instructions.

    The positions are pairs: byte of the instruction in the returned block, byte in the given one.
    """
    code = bytearray(block[:at])
    starts: list[tuple[int, int]] = []
    while True:
        starts.append((len(code), at))
        opcode, _, words = struct.unpack_from("<BBH", block, at) if at + 4 <= end else (0, 0, 0)
        if words < 1:
            raise Refused("the code ends without an END", at)
        plain, behind = unpack_words(block, at + 4, end, words - 1)
        code += block[at : at + 4] + plain
        if opcode == 0:
            if end - behind >= 4 or any(block[behind:end]):
                raise Refused("the code goes on behind its END", behind)
            return bytes(code), starts
        at = behind


def _stored_byte(block: bytes, starts: list[tuple[int, int]], plain: int) -> int:
    """Return the byte of a packed block that a byte of the plain code comes from."""
    first, at = starts[max(bisect_right(starts, (plain, len(block))) - 1, 0)]
    return at if plain < first + 4 else unpack_words(block, at + 4, len(block), (plain - first) // 4 - 1)[1]


def _states(block: bytes, weights: bytes, size: int, at: int, count: int) -> tuple[State, ...]:
    found: list[State] = []
    reached = 0
    for position in range(at, at + 16 * count, 16):
        if position + 16 > len(block):
            raise Refused("the state table leaves the block", position)
        offset, length, source, fill = struct.unpack_from("<4I", block, position)
        if offset != reached or offset + length > size:
            raise Refused(f"a state at {offset} of {length} bytes", position)
        if source == 0xFFFFFFFF:
            initial = (fill.to_bytes(4, "little") * (length // 4 + 1))[:length]
        elif source + length <= len(weights):
            initial = weights[source : source + length]
        else:
            raise Refused("the first contents of a state leave the weights", position)
        if length % 16 or (source != 0xFFFFFFFF and fill):
            raise Refused(f"a state of {length} bytes with fill {fill}", position)
        found.append(State(offset, initial, None if source == 0xFFFFFFFF else source))
        reached += length
    if reached != size:
        raise Refused(f"{reached} of {size} bytes of state have first contents", 80)
    return tuple(found)


def _checksum(block: bytes, weights: bytes, kernels: bytes, identity: int) -> None:
    if identity + 48 > len(block):
        raise Refused("the identity leaves the block", 16)
    clean = bytearray(block)
    clean[identity + 28 : identity + 32] = bytes(4)
    found = zlib.crc32(kernels, zlib.crc32(weights, zlib.crc32(clean)))
    if found != _word(block, identity + 28):
        raise Refused(f"the checksum is {_word(block, identity + 28):08x}, the blocks have {found:08x}", identity + 28)


def _tensors(block: bytes, at: int, count: int) -> tuple[dict[str, Any], ...]:
    rows = []
    for position in range(at, at + 48 * count, 48):
        if position + 48 > len(block):
            raise Refused("the tensor table leaves the block", position)
        kind, index, dtype, rank, size, zero, scale = struct.unpack_from("<4BIif", block, position)
        dims = struct.unpack_from("<8I", block, position + 16)
        if kind > 1 or dtype >= len(DTYPES) or rank > 8 or any(dims[rank:]):
            raise Refused("a row of the tensor table makes no sense", position)
        rows.append(
            {"kind": kind, "index": index, "dtype": DTYPES[dtype], "bytes": size, "zero": zero, "scale": scale,
             "shape": dims[:rank], "at": position}
        )  # fmt: skip
    return tuple(rows)


def _instructions(block: bytes, at: int, end: int) -> tuple[tuple[Call | Copy | Wait | Loop, ...], int]:
    steps: list[Call | Copy | Wait | Loop] = []
    calls = 0
    if end > len(block):
        raise Refused("the code leaves the block", 64)
    while True:
        opcode, _, words = _head(block, at, end)
        if opcode == 0:
            if at + 4 != end:
                raise Refused("the code goes on behind its END", at + 4)
            return tuple(steps), calls
        if opcode != 4:
            step = _step(block, at, end)
            calls += isinstance(step, Call)
            steps.append(step)
            at += 4 * words
            continue
        iterations, length = _word(block, at + 4), _word(block, at + 8)
        inner, stop = at + 4 * words, at + 4 * words + 4 * length
        if stop > end:
            raise Refused("a loop's body leaves the code", at)
        body = []
        while inner < stop:
            body.append(_step(block, inner, stop))
            inner += 4 * _head(block, inner, stop)[2]
        calls += iterations * sum(isinstance(step, Call) for step in body)
        steps.append(Loop(at, iterations, tuple(body)))
        at = stop


def _head(block: bytes, at: int, end: int) -> tuple[int, int, int]:
    if at + 4 > end:
        raise Refused("the code ends without an END", at)
    opcode, operands, words = struct.unpack_from("<BBH", block, at)
    if words < 1 or at + 4 * words > end or opcode > 4 or (opcode != 1 and (operands or words != _WORDS[opcode])):
        raise Refused(f"instruction {opcode} of {words} words", at)
    return opcode, operands, words


def _step(block: bytes, at: int, end: int) -> Call | Copy | Wait:
    opcode, operands, words = _head(block, at, end)
    if opcode == 1:
        return _call(block, at, operands, words)
    if opcode == 2:
        channel, source, index, target, start, to, size = struct.unpack_from("<4B3I", block, at + 4)
        if source >= len(REGIONS) or target >= len(REGIONS):
            raise Refused("a copy names an unknown region", at)
        ends = REGIONS[source], REGIONS[target]
        indexed = [end in ("input", "output") for end in ends]
        if channel >= _CHANNELS or size == 0 or all(indexed) or (index and not any(indexed)):
            raise Refused(f"a copy of {size} bytes from {ends[0]} to {ends[1]} {index} on channel {channel}", at)
        if ends[0] == ends[1] and start < to + size and to < start + size:
            raise Refused("source and target of a copy overlap", at)
        places = tuple(index if end else 0 for end in indexed)
        return Copy(at, channel, (ends[0], places[0], start), (ends[1], places[1], to), size)
    if opcode == 3:
        if (channel := _word(block, at + 4)) >= _CHANNELS:
            raise Refused(f"a wait for channel {channel}", at)
        return Wait(at, channel)
    raise Refused(f"instruction {opcode} of {words} words", at)


def _call(block: bytes, at: int, count: int, words: int) -> Call:
    if words < 6:
        raise Refused(f"a call of {words} words", at)
    number, abi, rounding, tag, first, rows, step = _CALL.unpack_from(block, at + 4)
    if number not in KERNELS:
        raise Refused(f"kernel {number} is not in the published table", at)
    name, known, roles, params = KERNELS[number]
    size = sum(width for _, width in params)
    if abi != known or count != len(roles) or words != 6 + 10 * count + size:
        raise Refused(f"{name} with ABI {abi}, {count} operands and {words} words", at)
    if rows < 1 or rounding > 4:
        raise Refused(f"{name} with {rows} rows and rounding {rounding}", at)
    operands: dict[str, Operand] = {}
    for position, role in enumerate(roles):
        operands[role.rstrip("?")] = _operand(block, at + 24 + 40 * position, role.endswith("?"))
    values: dict[str, Any] = {}
    place = at + 24 + 40 * count
    for param, width in params:
        numbers = struct.unpack_from(f"<{width}i", block, place)
        values[param] = numbers[0] if width == 1 else numbers
        place += 4 * width
    return Call(at, name, rounding, tag, first, rows, step, operands, values)


def _operand(block: bytes, at: int, optional: bool) -> Operand:
    region, index, dtype, reserved, *numbers = _OPERAND.unpack_from(block, at)
    if numbers[-1] == 0:
        if optional and not any((region, index, dtype, reserved, *numbers)):
            return Operand("", 0, 0, *numbers)
        raise Refused("an operand without channels", at)
    if region >= len(REGIONS) or dtype >= len(DTYPES) or reserved or (index and region > 1):
        raise Refused("an operand's region or type makes no sense", at)
    offset, plane, pitch, pixel, ring, batch, height, width, channels = numbers
    if 0 in (ring, batch, height, width):
        raise Refused("an operand has no elements", at)
    return Operand(REGIONS[region], index, dtype, offset, plane, pitch, pixel, ring, batch, height, width, channels)
