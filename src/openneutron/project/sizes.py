"""Memory of a project: what the linker will be asked for, and whether the board has it.

Example:
    >>> check_sizes(sizes, load("frdmmcxn947"))
"""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.errors import OptionError
from openneutron.machine.runtime_memory import STACK_BYTES
from openneutron.project.boards import Board

# The most that driver, start-up and all kernels take as code; a selection takes less. A test holds an image to it.
CODE_BYTES = 96 * 1024
# Variables of the driver besides the model's own memory; a test holds an image to it.
STATIC_BYTES = 1024


@dataclass(frozen=True)
class Sizes:
    """Sizes of a microcontroller's program that contains one model, in bytes."""

    payload_bytes: int
    sample_bytes: int
    arena_bytes: int
    input_bytes: int
    output_bytes: int

    @property
    def flash_bytes(self) -> int:
        """Code and constants; of code the upper bound."""
        return CODE_BYTES + self.payload_bytes + self.sample_bytes

    @property
    def ram_bytes(self) -> int:
        """The model's arena, one set of inputs and outputs, stack and variables."""
        return self.arena_bytes + self.input_bytes + self.output_bytes + STACK_BYTES + STATIC_BYTES


def check_sizes(sizes: Sizes, board: Board) -> None:
    """Refuse a model that is too large for the board; the `OptionError` says what is short and what takes most."""
    short: list[str] = []
    for kind, need, memory in (("flash", sizes.flash_bytes, board.flash), ("RAM", sizes.ram_bytes, board.ram)):
        if need > memory.bytes:
            short.append(f"{need - memory.bytes:,} bytes of {kind} ({need:,} of {memory.bytes:,})")
    if not short:
        return
    parts = {
        "weights and microcode": sizes.payload_bytes,
        "samples": sizes.sample_bytes,
        "the model's arena": sizes.arena_bytes,
        "inputs and outputs": sizes.input_bytes + sizes.output_bytes,
    }
    largest = max(parts, key=lambda name: parts[name])
    hint = f"{largest} take {parts[largest]:,} bytes"
    if largest == "samples":
        hint += "; ask for fewer with --samples 1"
    elif largest == "the model's arena":
        hint += "; `openneutron fits` says what makes it smaller"
    else:
        hint += "; a board with more memory, or a smaller model"
    raise OptionError(f"the model is too large for it: {' and '.join(short)} short", where=board.name, hint=hint)
