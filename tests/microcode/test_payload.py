"""The payload's layout is NXP's bit for bit; the identity block behind it catches what stock runtimes cannot."""

from __future__ import annotations

import struct
import zlib

import pytest

from openneutron.errors import FormatError, OptionError
from openneutron.microcode.header import pack, size_of
from openneutron.microcode.payload import build_payload, parse_payload, payloads_of_pte
from openneutron.microcode.table import HEADER, IDENTITY, MAGIC, TENSOR, VERSION_WORD, Flag

INPUT_BYTES, OUTPUT_BYTES = (48, 7), (10,)
WEIGHTS, KERNELS = bytes(range(33)), b"kernels!"


def microcode(*, profiling: bool = False, version: int = VERSION_WORD, tail: bytes = b"code") -> bytes:
    """Microcode with two inputs and one output, as far as a payload looks into it."""
    tensors_at = size_of(HEADER) + size_of(IDENTITY)
    rows = [(0, 0, 48), (0, 1, 7), (1, 0, 10)]
    table = b"".join(pack(TENSOR, kind=kind, index=index, bytes=size) for kind, index, size in rows)
    body = pack(IDENTITY, target=b"imxrt700") + table + tail
    header = pack(
        HEADER,
        magic=MAGIC,
        version=version,
        header_bytes=size_of(HEADER),
        flags=Flag.PROFILING if profiling else 0,
        identity_offset=size_of(HEADER),
        tensors_offset=tensors_at,
        microcode_bytes=size_of(HEADER) + len(body),
        weights_bytes=len(WEIGHTS),
        kernels_bytes=len(KERNELS),
        layout=(64, 0, 0, 32, 2, 1) if profiling else (64, 32, 2, 1),
        tensor_count=3,
    )
    return header + body


def payload(code: bytes | None = None, **changes: object) -> bytes:
    arguments: dict[str, object] = {
        "microcode": microcode() if code is None else code,
        "weights": WEIGHTS,
        "kernels": KERNELS,
        "input_formats": (1, 0),
        "output_formats": (1,),
        "input_map": (1, 0),
        "output_map": (0,),
        "n_input_args": 2,
        "payload_version": 0,
        "target": "imxrt700",
        "converter": "open",
        "converter_version": "0.1.0",
    }
    return build_payload(**{**arguments, **changes})  # type: ignore[arg-type]


def with_crc(data: bytes) -> bytes:
    return data[:-4] + struct.pack("<I", zlib.crc32(data[:-4]))


def test_blocks_lie_where_stock_runtimes_look():
    code = microcode()
    data = payload()
    assert data[:10] == bytes([2, 1, 2, 1, 0, 1, 1, 0, 0, 0])
    assert data[10:16] == bytes(6)
    assert data[16 : 16 + len(code)] == code
    weights_at = 16 + -(-len(code) // 16) * 16
    assert data[weights_at : weights_at + len(WEIGHTS)] == WEIGHTS
    kernels_at = weights_at + 48
    assert data[kernels_at : kernels_at + 16] == KERNELS + bytes(8)
    assert len(data) % 16 == 0


@pytest.mark.parametrize("profiling", [False, True], ids=["plain", "profiling"])
def test_what_is_built_is_parsed(profiling: bool):
    code = microcode(profiling=profiling)
    parsed = parse_payload(payload(code, payload_version=int(profiling)), where="test")
    assert (parsed.microcode, parsed.weights, parsed.kernels) == (code, WEIGHTS, KERNELS)
    assert (parsed.input_formats, parsed.output_formats) == ((1, 0), (1,))
    assert (parsed.input_map, parsed.output_map, parsed.n_input_args) == ((1, 0), (0,), 2)
    assert (parsed.converter, parsed.target, parsed.profiling) == ("open", "imxrt700", profiling)
    assert parsed.identity is not None
    assert (parsed.identity.input_bytes, parsed.identity.output_bytes) == (INPUT_BYTES, OUTPUT_BYTES)
    assert parsed.identity.converter_version == "0.1.0"


def test_nxp_microcode_keeps_its_blocks_and_says_who_made_it():
    code = microcode(version=0x12345678)
    parsed = parse_payload(payload(code, converter="nxp", tensor_bytes=(48, 7, 10)), where="test")
    assert (parsed.converter, parsed.kernels) == ("nxp", KERNELS)
    assert parsed.identity is not None and parsed.identity.output_bytes == OUTPUT_BYTES


@pytest.mark.parametrize("version", [VERSION_WORD, 0x12345678], ids=["open", "nxp"])
def test_without_identity_block_as_stock_tools_write_it(version: int):
    code = microcode(version=version)
    data = payload(code, converter="open" if version == VERSION_WORD else "nxp")
    identity_bytes = struct.unpack_from("<I", data, len(data) - 16)[0]
    parsed = parse_payload(data[:-identity_bytes], where="test")
    assert parsed.identity is None and parsed.target == ""
    assert parsed.kernels.rstrip(b"\0") == KERNELS


def test_every_flipped_byte_is_noticed():
    data = payload()
    footer_magic = range(len(data) - 8, len(data) - 4)  # without it the block is not found, and nothing else changed
    for offset in range(len(data)):
        if offset in footer_magic:
            continue
        damaged = bytearray(data)
        damaged[offset] ^= 0x55
        with pytest.raises(FormatError):
            parse_payload(bytes(damaged), where="test")


def test_every_truncation_is_noticed_or_leaves_the_blocks_whole():
    data = payload()
    whole = parse_payload(data, where="test")
    for size in range(len(data)):
        try:
            cut = parse_payload(data[:size], where="test")
        except FormatError:
            continue
        assert (cut.microcode, cut.weights, cut.kernels) == (whole.microcode, whole.weights, whole.kernels)


# name: (byte offset to change, new bytes, part of the message)
BROKEN = {
    "format": (3, b"\x02", "byte 3: tensor format 2"),
    "input map": (6, b"\x02", "byte 6: input 0 is argument 2 of only 2"),
    "payload version": (9, b"\x07", "byte 9: payload version 7"),
    "magic": (16, b"\0\0\0\0", "byte 16: microcode starts with 0x00000000"),
    "input count of the microcode": (16 + 44, b"\x05\0\0\0", "microcode has 5 inputs and 1 outputs"),
    "microcode size": (16 + 24, b"\xff\xff\xff\x7f", "byte 16: the payload ends inside the microcode"),
    "weights size": (16 + 28, b"\xff\xff\xff\x7f", "the payload ends inside the weights"),
    "kernels size": (16 + 32, b"\xff\xff\xff\x7f", "the payload ends inside the kernels"),
    "profiling flag": (16 + 12, b"\x01", "contradict payload version 0"),
    "identity version": (-12, b"\x02\0\0\0", "identity block of version 2"),
    "identity size": (-16, b"\xff\xff\xff\x7f", "identity block of 2147483647 bytes"),
    "tensor count": (-36, b"\x09", "9 tensors do not fit"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_field_is_named_with_its_offset(name: str):
    offset, value, message = BROKEN[name]
    data = bytearray(payload())
    offset %= len(data)
    data[offset : offset + len(value)] = value
    with pytest.raises(FormatError, match=message) as caught:
        parse_payload(with_crc(bytes(data)), where="model.pte")
    assert str(caught.value).startswith("model.pte, byte ")


def test_maps_must_match_the_formats():
    with pytest.raises(OptionError, match="1 and 1 map entries for 2 inputs and 1 outputs"):
        payload(input_map=(0,))


def test_converter_must_be_the_one_that_made_the_microcode():
    with pytest.raises((FormatError, OptionError), match="converter"):
        payload(converter="nxp")


@pytest.mark.parametrize("data", [b"", b"not a program at all", bytes(64)], ids=["empty", "text", "zeros"])
def test_not_a_program(data: bytes):
    with pytest.raises(FormatError, match=r"model\.pte: not an ExecuTorch program"):
        payloads_of_pte(data, where="model.pte")


def test_damaged_program():
    with pytest.raises(FormatError, match=r"model\.pte, model, byte 240: a table lies outside"):
        payloads_of_pte(b"\xf0\0\0\0ET12" + bytes(range(100)), where="model.pte")
