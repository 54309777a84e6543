"""Silicon rounding: a compiled file with the multipliers that silicon is known, or assumed, to have.

NXP's MIT-licensed ONNX Runtime provider for i.MX 95 shows the scale word: a 16-bit mantissa whose top bit is set, truncated
from the FP32 scale, and a 6-bit right shift. LiteRT's multiplier has 31 bits. Assumed: that the other chips do the same; that
the shifted product is rounded once, halves away from zero; that element-wise operators, whose rounding is not public either,
keep LiteRT's steps with multipliers cut to 16 bits. Tables, pools and softmax are unchanged.

No kernel changes: a 16-bit mantissa times a 32-bit sum is exact in a double, so the rounding mode `EXACT53` computes it.

Example:
    >>> board = silicon_file(Path("out.tflite").read_bytes(), where="out.tflite")
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.compiler import kernels
from openneutron.errors import FormatError, OptionError
from openneutron.files import kind_of
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.microcode import abi
from openneutron.microcode.decode import decode
from openneutron.microcode.encode import encode_blocks
from openneutron.microcode.graph_op import BLOCKS, blocks_of, is_graph_op
from openneutron.microcode.instructions import Call, Dma, Instruction, Loop, Operand, Program, Step
from openneutron.microcode.payload import BACKEND_ID, parse_payload
from openneutron.microcode.pte import read_plan
from openneutron.microcode.seal import remove_seal, seal_pte
from openneutron.microcode.table import Region, Rounding

EXACT, SILICON = "exact", "silicon"
ROUNDINGS = (EXACT, SILICON)
LABEL = "silicon's 16-bit multipliers (how it rounds halves is assumed)"

_MANTISSA_BITS = 16
_DOUBLE_BITS = 53
_LOW_BITS = 22  # low bits of a double's mantissa, stored beside the shift in a table of EXACT53
_SHIFTS = (37, 127)  # range that EXACT53 supports
_TABLED = ("conv2d", "depthwise_conv2d", "fully_connected", "transpose_conv2d")
_CUT = (1 << 31 - _MANTISSA_BITS) - 1  # low bits of a 31-bit multiplier that a 16-bit one lacks


def check_rounding(rounding: str) -> str:
    """Return the rounding if it is known; an `OptionError` names the known ones.

    Example:
        >>> check_rounding("silicon")
        'silicon'
    """
    if rounding not in ROUNDINGS:
        raise OptionError(f"--rounding is {rounding!r}", hint=f"one of {', '.join(ROUNDINGS)}")
    return rounding


def silicon_scale(real: float) -> tuple[int, int]:
    """Return (mantissa, shift) of a scale word: real is about mantissa * 2^-(16 + shift), truncated at 16 bits.

    Example:
        >>> silicon_scale(0.3)
        (39321, 1)
    """
    fraction, exponent = np.frexp(np.float32(real))
    return int(fraction * (1 << _MANTISSA_BITS)), -int(exponent)


def silicon_program(program: Program) -> Program:
    """Return the program with silicon's multipliers and rounding."""
    weights = bytearray(program.weights)
    done: dict[int, bool] = {}
    sources: list[Dma] = []

    def turn(step: Step) -> Step:
        if isinstance(step, Dma):
            sources.append(step)
            return step
        return _call(step, weights, done, sources) if isinstance(step, Call) else step

    instructions: list[Instruction] = []
    for item in program.instructions:
        body = replace(item, body=tuple(map(turn, item.body))) if isinstance(item, Loop) else turn(item)
        instructions.append(body)
    return replace(program, instructions=tuple(instructions), weights=bytes(weights))


def silicon_blocks(microcode: bytes, weights: bytes, kernels_block: bytes) -> tuple[bytes, bytes]:
    """Return microcode and weights of one NeutronGraph as silicon would compute them, of the same sizes.

    Shorter multipliers need fewer bits, which leaves space for other changes.
    """
    kernels.rules()  # importing their files declares the kernels' parameters
    program = silicon_program(decode(microcode, weights, kernels_block))
    changed = encode_blocks(program, room=(len(microcode), len(weights)))
    if (len(changed[0]), len(changed[1])) != (len(microcode), len(weights)):
        raise FormatError(
            "silicon's multipliers do not fit where ours were stored",
            hint="compile with --pass-off code_weights,pack_code",
        )
    return changed


def silicon_file(data: bytes, *, where: str) -> bytes:
    """Return a compiled `.tflite` or `.pte` that computes as silicon does; a `FormatError` for anything else."""
    kind = kind_of(data)
    if kind == "tflite":
        return _litert(data, where)
    if kind == "pte":
        return _pte(data, where)
    raise FormatError("only compiled .tflite and .pte files have multipliers", where=where)


def _call(call: Call, weights: bytearray, done: dict[int, bool], sources: list[Dma]) -> Call:
    kernel = abi.by_id(call.kernel)
    if kernel.name not in _TABLED:
        return replace(call, params=_cut_multipliers(call.params))
    table = call.operands[kernel.operands.index("table")]
    at = _place(table, sources)
    if at is None:
        return call
    if at not in done:
        done[at] = _table(weights, at, table.channels, call.rounding)
    return replace(call, rounding=Rounding.EXACT53) if done[at] else call


def _place(table: Operand, sources: list[Dma]) -> int | None:
    """Return a table's offset in the weights block, also if a copy of it is read."""
    if table.region is Region.WEIGHTS:
        return table.offset
    for copy in reversed(sources):
        inside = copy.target_region is table.region and 0 <= table.offset - copy.target_offset < copy.bytes
        if inside and copy.source_region is Region.WEIGHTS:
            return copy.source_offset + table.offset - copy.target_offset
    return None


def _table(weights: bytearray, at: int, size: int, rounding: Rounding) -> bool:
    """Rewrite bias, multiplier and shift of every channel; False for factors that the scale word cannot hold."""
    words = np.frombuffer(bytes(weights[at : at + size]), "<i4").reshape(3, -1).astype(np.int64)
    if (words[1] < 0).any() or rounding is Rounding.NONE:
        return False
    factors = [silicon_scale(real) for real in _reals(words[1], words[2], rounding)]
    shifts = [_DOUBLE_BITS + shift for _, shift in factors]
    if any(mantissa and not _SHIFTS[0] <= s <= _SHIFTS[1] for (mantissa, _), s in zip(factors, shifts, strict=True)):
        return False
    # The mantissa's upper 31 bits are the multiplier; the 22 below it, beside the shift, are zeros.
    words[1] = [mantissa << 31 - _MANTISSA_BITS for mantissa, _ in factors]
    words[2] = np.clip(shifts, *_SHIFTS)
    weights[at : at + size] = (words & 0xFFFFFFFF).astype("<u4").tobytes()
    return True


def _reals(
    multipliers: npt.NDArray[np.int64], shifts: npt.NDArray[np.int64], rounding: Rounding
) -> npt.NDArray[np.float64]:
    """Return the real factors that a table's integers represent."""
    if rounding is Rounding.DOUBLE:
        return np.ldexp(multipliers.astype(np.float64), (shifts - 31).astype(np.int32))
    if rounding is Rounding.EXACT31:
        return np.ldexp(multipliers.astype(np.float64), (-shifts).astype(np.int32))
    mantissas = (multipliers << _LOW_BITS) | (shifts & 0xFFFFFFFF) >> 8
    return np.ldexp(mantissas.astype(np.float64), -(shifts & 0xFF).astype(np.int32))


def _cut_multipliers(params: Any) -> Any:
    """Return the parameters with their 31-bit multipliers cut to 16 bits."""
    named = [field.name for field in fields(params) if "multiplier" in field.name and field.name != "depth_multiplier"]
    values = {name: getattr(params, name) for name in named}
    return replace(params, **{name: _truncate(value) for name, value in values.items()}) if named else params


def _truncate(value: int) -> int:
    return value & ~_CUT if value >= 0 else -(-value & ~_CUT)


def _litert(data: bytes, where: str) -> bytes:
    model = read_model(data, source=where)
    graph = model.main
    found = False
    for position, op in enumerate(graph.operators):
        if not is_graph_op(op):
            continue
        found = True
        old = blocks_of(graph, op, outputs=len(op.outputs), where=f"{where}, operator {position}")
        microcode, weights = silicon_blocks(old.microcode, old.weights, old.kernels)
        for name, block in (("microcode", microcode), ("weights", weights)):
            tensor = graph.tensors[op.inputs[BLOCKS.index(name) - len(BLOCKS)]]
            if block:
                tensor.data = np.frombuffer(block, np.uint8)
    if not found:
        raise FormatError("nothing in this model is compiled, so no multiplier can be changed", where=where)
    return write_model(model)


def _pte(data: bytes, where: str) -> bytes:
    changed = bytearray(remove_seal(data, where=where))
    for number, (backend, blob) in enumerate(read_plan(data, where=where).payloads):
        if backend != BACKEND_ID:
            continue
        payload = parse_payload(blob, where=f"{where}, delegate {number}")
        microcode, weights = silicon_blocks(payload.microcode, payload.weights, payload.kernels)
        new = bytearray(blob)
        for old, block in ((payload.microcode, microcode), (payload.weights, weights)):
            at = blob.find(old)
            new[at : at + len(block)] = block
        if payload.identity is not None:
            new[-4:] = struct.pack("<I", zlib.crc32(memoryview(new)[:-4]))  # the payload ends with its checksum
        start = data.find(blob)
        changed[start : start + len(new)] = new
    return seal_pte(bytes(changed))
