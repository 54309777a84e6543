"""Microcode that no compiler would write, valid as far as the validator looks."""

from __future__ import annotations

import struct

from openneutron.machine import targets
from openneutron.microcode.encode import encode_blocks
from openneutron.microcode.graph_op import Compiled
from openneutron.microcode.instructions import Call, Instruction, Operand, Program, StateRow, TensorRow
from openneutron.microcode.storage.sections import Section
from openneutron.microcode.table import ElementType, Region, Rounding

INPUT_BYTES = 64


def tensor(is_output: bool, size: int) -> TensorRow:
    """An INT8 vector."""
    return TensorRow(is_output, 0, ElementType.INT8, (size,), size)


def blocks(
    *instructions: Instruction,
    target: str = "imxrt700",
    input_bytes: int = INPUT_BYTES,
    output_bytes: int = INPUT_BYTES,
    scratch: int = 0,
    prefetch: int = 0,
    tcm: int = 0,
    kernels: tuple[int, ...] = (),
    weights: bytes = bytes(16),
    sections: tuple[Section, ...] = (),
    states: tuple[StateRow, ...] = (),
) -> Compiled:
    """One input and one output, and the instructions given; `kernels` are the ids that they call."""
    t = targets.load(target)
    listed = struct.pack(f"<I{len(kernels)}H", len(kernels), *kernels) if t.subsystem else bytes(16)
    program = Program(
        target, t.hw_version, t.cores, t.units, t.length, (0, 0, 0),
        (tensor(False, input_bytes), tensor(True, output_bytes)), instructions, weights, listed,
        scratch_bytes=scratch, prefetch_bytes=prefetch, tcm_bytes=tcm, sections=sections, states=states,
    )  # fmt: skip
    microcode, stored = encode_blocks(program)
    return Compiled(microcode, stored, listed, (0,), (1,))


def operand(region: Region, batch: int, height: int, width: int, channels: int) -> Operand:
    """All pixels in the same few bytes: a large shape in small memory."""
    return Operand(region, 0, ElementType.INT8, 0, 0, 0, 0, height, batch, height, width, channels)


def call(kernel: int, abi: int, operands: tuple[Operand, ...], rows: int, params: object) -> Call:
    """One call of all rows."""
    return Call(kernel, abi, Rounding.DOUBLE, 0, 0, rows, 0, operands, params)
