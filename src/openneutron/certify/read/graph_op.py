"""Checks the custom operator that holds microcode: attributes, blocks and extra outputs are what the microcode says.

The attributes are a map in the FlexBuffers format, which has many forms; only the compiler's form is accepted.
"""

from __future__ import annotations

import struct

from openneutron.certify.read.litert import Operator, Tensor
from openneutron.certify.read.microcode import Program
from openneutron.certify.refused import Refused

_FORMAT = 1  # of the microcode
_UINT, _STRING, _MAP = 0x0A, 0x16, 0x26  # types in a map, of four bytes
_NAMES = ("microcode", "weights", "kernels", "scratch", "profile", "debug")
_PROFILE_RECORD = 16  # bytes that one call writes


def check_graph_op(op: Operator, tensors: list[Tensor], program: Program, number: int) -> None:
    """Refuse NeutronGraph `number` with options, or with blocks or extra outputs of an unexpected name, type or size.

    `tensors` are its three blocks, scratch, and with profiling the records and the debug output.
    """
    stored = _attributes([len(one.data or b"") for one in tensors[:3]], program)
    # Version 1, with attributes and no options.
    if op.attributes != ("CUSTOM NeutronGraph", ("", ""), (), (stored, 0, 1, (), -1)) or op.intermediates:
        raise Refused("a NeutronGraph has options, a version, tensors or attributes of its own", op.offset)
    sizes = [len(one.data or b"") for one in tensors[:3]] + [program.sizes["scratch", 0]]
    if program.profiling:
        sizes += [_PROFILE_RECORD * program.calls, 1]
    if len(sizes) != len(tensors):
        raise Refused(
            f"a NeutronGraph has {len(tensors) - 3} outputs beside its results, not {len(sizes) - 3}", op.offset
        )
    for name, size, tensor in zip(_NAMES, sizes, tensors, strict=False):
        wanted = Tensor(f"neutron_{number}_{name}", (max(size, 1),), "UINT8", more=(False, (), ()))
        if (tensor.name, tensor.form, tensor.open_shape) != (wanted.name, wanted.form, ()):
            raise Refused(f"{tensor.name!r} is not {wanted.name!r} of {size} bytes", op.offset)


def _attributes(sizes: list[int], program: Program) -> bytes:
    """Return the attributes' bytes: keys, texts, offsets of the keys, the map with numbers and types, and its place."""
    version = ".".join(str(program.version >> shift & 0xFF) for shift in (16, 8, 0))
    rows: list[tuple[bytes, int | bytes]] = [
        (b"calls", program.calls),
        (b"converter", b"OpenNeutron " + version.encode()),
        (b"format_version", _FORMAT),
        (b"kernels_bytes", sizes[2]),
        (b"microcode_bytes", sizes[0]),
        (b"prefetch_bytes", program.sizes["prefetch", 0]),
        (b"scratch_bytes", program.sizes["scratch", 0]),
        (b"state_bytes", program.sizes["state", 0]),
        (b"target", program.target.encode()),
        (b"weights_bytes", sizes[1]),
    ]
    keys, texts, offsets, values = b"", b"", b"", b""
    at_keys, at_texts = [], {}
    for key, _ in rows:
        at_keys.append(len(keys))
        keys += key + b"\0"
    keys += bytes(-len(keys) % 4)
    for key, value in rows:
        if isinstance(value, bytes):
            at_texts[key] = len(keys) + len(texts) + 4
            texts += struct.pack("<I", len(value)) + value + b"\0"
            texts += bytes(-len(texts) % 4)
    first = len(keys) + len(texts) + 4  # behind the count of keys
    for number, at in enumerate(at_keys):
        offsets += struct.pack("<I", first + 4 * number - at)
    where = first + len(offsets)
    for number, (key, value) in enumerate(rows):
        place = where + 12 + 4 * number
        values += struct.pack("<I", place - at_texts[key] if isinstance(value, bytes) else value)
    types = bytes(_STRING if isinstance(value, bytes) else _UINT for _, value in rows)
    types += bytes(-len(types) % 4)
    head = struct.pack("<I", len(rows)) + offsets + struct.pack("<3I", where - first, 4, len(rows))
    return keys + texts + head + values + types + struct.pack("<I2B", len(values + types), _MAP, 4)
