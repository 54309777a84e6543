"""The delegate's payload inside a `.pte`: `header | microcode | weights | kernels`, each padded to 16, then identity.

The four blocks keep NXP's layout bit for bit. The identity block behind them is ours: stock runtimes never look past
the kernels, ours finds it from the end of the payload and verifies it. All values are little endian.

Example:
    >>> payload = parse_payload(data, where="model.pte, delegate 0")
    >>> payload.target, payload.converter
    ('imxrt700', 'open')
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from openneutron.errors import FormatError, OptionError
from openneutron.microcode.header import size_of, unpack
from openneutron.microcode.pte import FORWARD, read_plan, stored_payloads
from openneutron.microcode.table import ALIGNMENT, HEADER, MAGIC, TENSOR, VERSION_WORD, Flag

BACKEND_ID: Final = "NeutronBackend"  # the name upstream registered; a .pte finds its delegate by it
FRAME: Final = "program_frame.pte"  # in a debug bundle: the program without its delegates' blocks
CHANNELS_LAST: Final = 1
FORMATLESS: Final = 0

IDENTITY_MAGIC: Final = 0x64494E4F  # "ONId" in the file
IDENTITY_VERSION: Final = 1
# converter kind, converter version, target, then bytes of microcode, weights and kernels, and the number of tensors;
# one u32 per tensor (inputs, then outputs; 0 = not recorded) follows, padded to 16.
_IDENTITY: Final = struct.Struct("<16s32s16sIIII")
# bytes of the whole block, version, magic, CRC-32 of every byte of the payload before it: last, so that it covers all.
_FOOTER: Final = struct.Struct("<IIII")
# Programs for these chips plan megabytes; the runtime fills what a damaged size asks for with zeros, for minutes.
_MAX_PLANNED_BYTES: Final = 1 << 30
_CONTAINER_WORDS: Final = 15  # the words of NXP's container that the layout depends on


@dataclass(frozen=True)
class Identity:
    """Converter, target and tensor sizes of a payload (size 0: not recorded)."""

    converter: str
    converter_version: str
    target: str
    input_bytes: tuple[int, ...]
    output_bytes: tuple[int, ...]


@dataclass(frozen=True)
class Payload:
    """A parsed payload; `identity` is None when a stock tool wrote it."""

    microcode: bytes
    weights: bytes
    kernels: bytes
    input_formats: tuple[int, ...]
    output_formats: tuple[int, ...]
    input_map: tuple[int, ...]
    output_map: tuple[int, ...]
    n_input_args: int
    payload_version: int
    identity: Identity | None

    @property
    def converter(self) -> str:
        """ "open" or "nxp", as the version word of the microcode says."""
        return _kind(self.microcode)

    @property
    def target(self) -> str:
        """The target's name, "" when a stock tool wrote the payload."""
        return self.identity.target if self.identity else ""

    @property
    def profiling(self) -> bool:
        """Whether kernel calls become ETDump events."""
        return self.payload_version == 1


def build_payload(
    microcode: bytes | memoryview,
    weights: bytes | memoryview,
    kernels: bytes | memoryview,
    input_formats: Sequence[int],
    output_formats: Sequence[int],
    input_map: Sequence[int],
    output_map: Sequence[int],
    n_input_args: int,
    payload_version: int,
    target: str,
    converter: str,
    converter_version: str,
    tensor_bytes: Sequence[int] | None = None,
) -> bytes:
    """Build the payload of one delegate."""
    inputs, outputs = len(input_formats), len(output_formats)
    if len(input_map) != inputs or len(output_map) != outputs:
        raise OptionError(
            f"{len(input_map)} and {len(output_map)} map entries for {inputs} inputs and {outputs} outputs"
        )
    header = bytes(
        [inputs, outputs, n_input_args, *input_formats, *output_formats, *input_map, *output_map, payload_version]
    )
    # Joined once: weights may be larger than everything else in memory.
    blocks = [part for block in (header, microcode, weights, kernels) for part in (block, _padding(block))]
    sizes = _table_bytes(microcode, inputs + outputs) if _kind(microcode) == "open" else tensor_bytes
    identity = _identity_block(
        reduce(lambda crc, part: zlib.crc32(part, crc), blocks, 0),
        (converter, converter_version, target),
        (len(microcode), len(weights), len(kernels)),
        tuple(sizes) if sizes is not None else (0,) * (inputs + outputs),
    )
    data = b"".join((*blocks, identity))
    # Parsed again, because the parser defines what the runtime accepts.
    built = parse_payload(memoryview(data), where="new payload")
    if built.converter != converter:
        raise OptionError(f"the microcode was made by the {built.converter} converter, not by {converter!r}")
    return data


def parse_payload(data: bytes | memoryview, *, where: str) -> Payload:
    """Read a payload back; a `FormatError` names `where` and the byte offset of what is wrong.

    The blocks of a memoryview are views of it.

    Example:
        >>> parse_payload(b"", where="empty.bin")
        Traceback (most recent call last):
        openneutron.errors.FormatError: empty.bin, byte 0: the payload ends inside its header
    """
    reader = _Reader(data, where)
    inputs, outputs, n_input_args = reader.take(0, 3, "its header")
    length = 4 + 2 * (inputs + outputs)
    fields = reader.take(3, length - 3, "its header")
    formats, maps = fields[: inputs + outputs], fields[inputs + outputs : -1]
    version = fields[-1]
    for position, value in enumerate(formats):
        if value not in (FORMATLESS, CHANNELS_LAST):
            raise reader.error(3 + position, f"tensor format {value} is neither 0 (formatless) nor 1 (channels-last)")
    for position, value in enumerate(maps[:inputs]):
        if value >= n_input_args:
            at = 3 + inputs + outputs + position
            raise reader.error(at, f"input {position} is argument {value} of only {n_input_args}")
    if version not in (0, 1):
        raise reader.error(length - 1, f"payload version {version} is unknown; 0 and 1 (profiling) are known")

    code_at = _align(length)
    words = struct.unpack(f"<{_CONTAINER_WORDS}I", reader.take(code_at, 4 * _CONTAINER_WORDS, "the microcode's header"))
    if words[0] != MAGIC:
        raise reader.error(code_at, f"microcode starts with {words[0]:#010x} instead of {MAGIC:#010x}")
    counts = words[13:15] if version == 1 else words[11:13]
    if counts != (inputs, outputs):
        raise reader.error(
            code_at + (52 if version == 1 else 44),
            f"microcode has {counts[0]} inputs and {counts[1]} outputs, the payload's header {inputs} and {outputs}",
        )
    microcode = reader.take(code_at, words[6], "the microcode")
    weights_at = code_at + _align(words[6])
    weights = reader.take(weights_at, words[7], "the weights")
    kernels_at = weights_at + _align(words[7])
    identity, sizes, end = _read_identity(reader, inputs)
    open_microcode = words[1] == VERSION_WORD
    if open_microcode:
        profiling = bool(words[3] & Flag.PROFILING)
        if profiling != (version == 1):
            raise reader.error(code_at + 12, f"microcode flags {words[3]:#x} contradict payload version {version}")
        kernel_bytes = words[8]
    else:
        kernel_bytes = sizes[2] if identity else max(0, end - kernels_at)
    kernels = reader.take(kernels_at, kernel_bytes, "the kernels")
    if identity:
        _agree(reader, identity, sizes, (len(microcode), len(weights), len(kernels)), kernels_at, end, open_microcode)
    return Payload(
        microcode=microcode,
        weights=weights,
        kernels=kernels,
        input_formats=tuple(formats[:inputs]),
        output_formats=tuple(formats[inputs:]),
        input_map=tuple(maps[:inputs]),
        output_map=tuple(maps[inputs:]),
        n_input_args=n_input_args,
        payload_version=version,
        identity=identity,
    )


def without_formats(data: bytes, inputs: Container[int], outputs: Container[int]) -> bytes:
    """Return the payload without format conversion for these inputs (by argument) and outputs (by position).

    Example:
        >>> without_formats(data, inputs={0}, outputs={1})
    """
    found = parse_payload(data, where="payload")
    count, changed = len(found.input_map), bytearray(data)
    for row, argument in enumerate(found.input_map):
        if argument in inputs:
            changed[3 + row] = FORMATLESS
    for row, position in enumerate(found.output_map):
        if position in outputs:
            changed[3 + count + row] = FORMATLESS
    if found.identity is not None:
        changed[-4:] = struct.pack("<I", zlib.crc32(memoryview(changed)[:-4]))
    return bytes(changed)


def payloads_of_pte(pte: bytes, *, where: str = "<pte>", method: str = FORWARD) -> list[Payload]:
    """Return the payloads of all Neutron delegates of a method of an ExecuTorch program, in the order of the program."""
    blobs = delegate_blobs(pte, where=where, method=method)
    return [parse_payload(data, where=f"{where}, delegate {index}") for index, data in enumerate(blobs)]


def frame_of_pte(pte: bytes, *, where: str = "<pte>") -> bytes:
    """Return the program with zeros in place of the Neutron delegates' blocks and checksums, for `certify`."""
    made = bytearray(pte)
    for stored in stored_payloads(pte, where=where):
        if stored.backend != BACKEND_ID:
            continue
        found = parse_payload(stored.whole, where=where)
        blocks = len(found.microcode), len(found.weights), len(found.kernels)
        at = stored.at + _align(4 + 2 * (len(found.input_map) + len(found.output_map)))
        for size, apart in zip(blocks, (-1, stored.weights_at, -1), strict=True):
            place = at if apart < 0 else apart
            made[place : place + size] = bytes(size)
            at += _align(size) if apart < 0 else 0
        made[stored.end - 4 : stored.end] = bytes(4)
    return bytes(made)


def delegate_blobs(pte: bytes, *, where: str = "<pte>", method: str = FORWARD) -> list[bytes]:
    """Return the bytes of all Neutron delegates' payloads of a method, without parsing them, in the order of the program."""
    plan = read_plan(pte, where=where, method=method)
    if plan.planned_bytes > _MAX_PLANNED_BYTES:
        raise FormatError(f"the program plans {plan.planned_bytes} bytes of memory for its tensors", where=where)
    return [data for name, data in plan.payloads if name == BACKEND_ID]


@dataclass(frozen=True)
class _Reader:
    """Bounds-checked slices of the payload."""

    data: Any
    where: str

    def error(self, offset: int, message: str, hint: str = "") -> FormatError:
        return FormatError(message, where=f"{self.where}, byte {offset}", hint=hint)

    def take(self, offset: int, size: int, what: str) -> Any:
        if offset + size > len(self.data):
            raise self.error(min(offset, len(self.data)), f"the payload ends inside {what}")
        return self.data[offset : offset + size]


def _read_identity(reader: _Reader, inputs: int) -> tuple[Identity | None, tuple[int, int, int], int]:
    """Return the identity block, the block sizes it records, and its position; (None, zeros, end) without one."""
    end = len(reader.data)
    if end < _FOOTER.size:
        return None, (0, 0, 0), end
    block_bytes, version, magic, crc = _FOOTER.unpack_from(reader.data, end - _FOOTER.size)
    if magic != IDENTITY_MAGIC:
        return None, (0, 0, 0), end
    if zlib.crc32(memoryview(reader.data)[: end - 4]) != crc:
        raise reader.error(
            end - 4, "the payload's checksum is wrong: it was changed after it was written", "export the model again"
        )
    if version != IDENTITY_VERSION:
        raise reader.error(
            end - 12,
            f"identity block of version {version}; this OpenNeutron knows version {IDENTITY_VERSION}",
            "update OpenNeutron, or export the model again with this one",
        )
    start = end - block_bytes
    if block_bytes < _IDENTITY.size + _FOOTER.size or start < 0:
        raise reader.error(end - 16, f"identity block of {block_bytes} bytes in a payload of {end}")
    kind, made_by, target, *sizes, count = _IDENTITY.unpack_from(reader.data, start)
    if _IDENTITY.size + _align(4 * count) + _FOOTER.size != block_bytes:
        raise reader.error(
            start + _IDENTITY.size - 4, f"{count} tensors do not fit an identity block of {block_bytes} bytes"
        )
    if count < inputs:
        raise reader.error(
            start + _IDENTITY.size - 4, f"identity block has {count} tensors, the header {inputs} inputs"
        )
    tensors = struct.unpack_from(f"<{count}I", reader.data, start + _IDENTITY.size)
    identity = Identity(_text(kind), _text(made_by), _text(target), tensors[:inputs], tensors[inputs:])
    return identity, (sizes[0], sizes[1], sizes[2]), start


def _agree(
    reader: _Reader,
    identity: Identity,
    recorded: tuple[int, int, int],
    found: tuple[int, int, int],
    kernels_at: int,
    identity_at: int,
    open_microcode: bool,
) -> None:
    if recorded != found or kernels_at + _align(found[2]) != identity_at:
        raise reader.error(
            identity_at,
            f"identity block records blocks of {recorded} bytes ending at byte {identity_at}, the microcode's header "
            f"{found} ending at byte {kernels_at + _align(found[2])}",
        )
    if identity.converter != ("open" if open_microcode else "nxp"):
        raise reader.error(identity_at, f"converter {identity.converter!r} did not make this microcode")


def _identity_block(
    crc: int, names: tuple[str, str, str], sizes: tuple[int, int, int], tensors: tuple[int, ...]
) -> bytes:
    encoded = [name.encode("ascii", "replace") for name in names]
    for name, room in zip(encoded, (16, 32, 16), strict=True):
        if len(name) >= room:
            raise OptionError(f"{name.decode()!r} is longer than the {room - 1} characters of the identity block")
    body = _IDENTITY.pack(*encoded, *sizes, len(tensors)) + struct.pack(f"<{len(tensors)}I", *tensors)
    body += _padding(body)
    footer = _FOOTER.pack(len(body) + _FOOTER.size, IDENTITY_VERSION, IDENTITY_MAGIC, 0)[:-4]
    return body + footer + struct.pack("<I", zlib.crc32(body + footer, crc))


def _table_bytes(microcode: bytes | memoryview, tensors: int) -> list[int]:
    offset = unpack(HEADER, microcode, 0)["tensors_offset"]
    rows = [unpack(TENSOR, microcode, offset + row * size_of(TENSOR)) for row in range(tensors)]
    return [row["bytes"] for row in rows]


def _kind(microcode: bytes | memoryview) -> str:
    if len(microcode) < 8:
        raise FormatError(f"microcode of {len(microcode)} bytes has no header")
    (version,) = struct.unpack_from("<I", microcode, 4)
    return "open" if version == VERSION_WORD else "nxp"


def _align(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _padding(block: bytes | memoryview) -> bytes:
    return bytes(_align(len(block)) - len(block))


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("ascii", "replace")
