"""Changes compiled files and corrects their checksum, as a forger would."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from openneutron.litert.flexbuffer import encode_map, read_map
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.microcode.decode import decode
from openneutron.microcode.encode import encode_blocks
from openneutron.microcode.graph_op import BLOCKS, is_graph_op

Blocks = tuple[bytearray, bytearray, bytearray]  # microcode, weights, kernels
_HEAD, _OPERAND = 24, 40  # bytes in front of a call's operands, and of each


def forge_blocks(compiled: bytes, change: Callable[[Blocks], None]) -> bytes:
    """Return a compiled model with changed blocks and a correct checksum; sections are expanded first."""
    model = read_model(compiled)
    graph = model.main
    op = next(op for op in graph.operators if is_graph_op(op))
    tensors = [graph.tensors[index] for index in op.inputs[-3:]]
    stored = decode(*(t.data.tobytes() for t in tensors if t.data is not None))
    plain = replace(stored, sections=(), packed=False)  # where every field and weight is at a place of its own
    blocks = tuple(map(bytearray, (*encode_blocks(plain), plain.kernels)))
    change(blocks)  # type: ignore[arg-type]
    seal(blocks)  # type: ignore[arg-type]
    for tensor, block in zip(tensors, blocks, strict=True):
        tensor.data, tensor.shape = np.frombuffer(bytes(block), np.uint8), (len(block),)
    sizes = {f"{name}_bytes": len(block) for name, block in zip(BLOCKS, blocks, strict=True)}
    stated = {name: one for name, one in read_map(op.custom_options).items() if isinstance(one, int | str)}
    op.custom_options = encode_map({**stated, **sizes})
    return write_model(model)


def reseal_blocks(compiled: bytes, change: Callable[[Blocks], None]) -> tuple[bytes, int]:
    """Return a compiled model with its stored blocks changed in place, resealed, and the position of its microcode."""
    model = read_model(compiled)
    op = next(op for op in model.main.operators if is_graph_op(op))
    found = [model.main.tensors[index].data for index in op.inputs[-3:]]
    stored = [one.tobytes() for one in found if one is not None]
    blocks = tuple(map(bytearray, stored))
    change(blocks)  # type: ignore[arg-type]
    seal(blocks)  # type: ignore[arg-type]
    start = compiled.index(stored[0])
    for before, after in zip(stored, blocks, strict=True):
        if before != after:
            assert len(before) == len(after) and compiled.count(before) == 1
            compiled = compiled.replace(before, bytes(after))
    return compiled, start


def seal(blocks: Blocks) -> None:
    """Write the checksum of the blocks."""
    identity = struct.unpack_from("<I", blocks[0], 16)[0]
    blocks[0][identity + 28 : identity + 32] = bytes(4)
    crc = zlib.crc32(blocks[2], zlib.crc32(blocks[1], zlib.crc32(blocks[0])))
    struct.pack_into("<I", blocks[0], identity + 28, crc)


def calls(block: bytes) -> list[tuple[int, int, int]]:
    """Return byte, kernel number and operand count of each call, inside loops too."""
    at, size = struct.unpack_from("<2I", block, 64)
    end, found = at + size, []
    while at < end:
        opcode, operands, words = struct.unpack_from("<BBH", block, at)
        if opcode == 1:
            found.append((at, struct.unpack_from("<H", block, at + 4)[0], operands))
        at += 4 * words
    return found


def add_to_operand(block: bytearray, call: int, operand: int, step: int) -> None:
    """Move the start of an operand by `step` bytes."""
    at = call + _HEAD + _OPERAND * operand + 4
    struct.pack_into("<I", block, at, struct.unpack_from("<I", block, at)[0] + step)


def add_to_parameter(block: bytearray, call: int, operands: int, number: int, step: int) -> None:
    """Add `step` to one parameter word."""
    at = call + _HEAD + _OPERAND * operands + 4 * number
    struct.pack_into("<i", block, at, struct.unpack_from("<i", block, at)[0] + step)
