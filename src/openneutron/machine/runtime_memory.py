"""What one model takes of a microcontroller's RAM with the open runtime, as `runtime/cortex_m33/main.c` sets it aside.

It says nothing about NXP's runtime, which has memory of its own.

Example:
    >>> memory = runtime_memory(microcode, weights, program)
    >>> memory.context_bytes, memory.arena_bytes
    (9008, 12304)
"""

from __future__ import annotations

from typing import NamedTuple

from openneutron.machine.window import least_window
from openneutron.microcode.encode import PROFILE_RECORD_BYTES, align
from openneutron.microcode.instructions import Program

# NEUTRON_CONTEXT_BYTES of neutron.h, which a test compares: a handle, with pointers of so many bytes.
_CONTEXT_FIXED, _CONTEXT_POINTERS = 624, 24
POINTER_BYTES = 4  # of a microcontroller
# A fifth more than the models of the zoo need on a Cortex-M33, measured by painting it; firmware.mk reads it here.
STACK_BYTES = 5120


def context_bytes(pointer: int = POINTER_BYTES) -> int:
    """Return the bytes of a handle of a model without state, TCM and coded constants."""
    return _CONTEXT_FIXED + _CONTEXT_POINTERS * pointer


class RuntimeMemory(NamedTuple):
    """Bytes of one model: its context with the window that constants are decoded in, and everything else it is handed."""

    context_bytes: int
    arena_bytes: int


def runtime_memory(microcode: bytes, weights: bytes, program: Program) -> RuntimeMemory:
    """The least memory of a model, every part at a multiple of 16: constants are decoded block by block."""
    window = least_window(microcode, weights, program.kernels)
    profile = PROFILE_RECORD_BYTES * program.call_count if program.profiling else 0
    parts = [program.scratch_bytes, program.prefetch_bytes, profile, *(row.bytes for row in program.tensors)]
    return RuntimeMemory(
        align(context_bytes() + program.tcm_bytes + program.state_bytes + window), sum(map(align, parts))
    )
