"""A microcode program as data classes, which the encoder takes and the decoder returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from openneutron.microcode.storage.sections import Section
from openneutron.microcode.table import ElementType, Region, Rounding


@dataclass(frozen=True)
class TensorRow:
    """One graph input or output."""

    is_output: bool
    index: int
    dtype: ElementType
    shape: tuple[int, ...]
    bytes: int
    scale: float = 0.0
    zero_point: int = 0


class StateRow(NamedTuple):
    """See `table.STATE_ROW`."""

    offset: int
    bytes: int
    source: int
    fill: int


class Operand(NamedTuple):
    """See `table.OPERAND`, whose order this is. A compile makes thousands, hence a tuple."""

    region: Region
    index: int  # type: ignore[assignment] # nobody looks for values in it
    dtype: ElementType
    offset: int
    plane: int
    pitch: int
    pixel: int
    ring: int
    batch: int
    height: int
    width: int
    channels: int


# An absent optional operand: all zeros in the file.
ABSENT = Operand(Region.INPUT, 0, ElementType.INT8, 0, 0, 0, 0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Call:
    """See `table.CALL`; `params` is the kernel's own dataclass."""

    kernel: int
    abi: int
    rounding: Rounding
    tag: int
    first_row: int
    rows: int
    row_step: int
    operands: tuple[Operand, ...]
    params: Any


@dataclass(frozen=True)
class Dma:
    """See `table.DMA`."""

    channel: int
    source_region: Region
    source_index: int
    target_region: Region
    source_offset: int
    target_offset: int
    bytes: int


@dataclass(frozen=True)
class Wait:
    """See `table.WAIT`."""

    channel: int


Step: TypeAlias = Call | Dma | Wait


@dataclass(frozen=True)
class Loop:
    """See `table.LOOP`."""

    iterations: int
    body: tuple[Step, ...]


Instruction: TypeAlias = Call | Dma | Wait | Loop


@dataclass(frozen=True)
class Program:
    """Everything in a microcode block, with the weights and kernels blocks it belongs to.

    `weights` are the plain bytes of region WEIGHTS; `sections`, where there are any, say how they are stored.
    """

    target: str
    hw_version: int
    cores: int
    units: int
    length: int
    converter_version: tuple[int, int, int]
    tensors: tuple[TensorRow, ...]
    instructions: tuple[Instruction, ...]
    weights: bytes
    kernels: bytes
    scratch_bytes: int
    prefetch_bytes: int = 0
    tcm_bytes: int = 0
    profiling: bool = False
    states: tuple[StateRow, ...] = ()
    solver_version: tuple[int, int, int] = (0, 0, 0)
    sections: tuple[Section, ...] = ()
    packed: bool = False  # instructions are stored as packed words
    # Whether steps are repeated: packed words then have the same size for any number of steps. No effect on results.
    over_steps: bool = field(default=False, compare=False)
    checksum: int = field(default=0, compare=False)  # filled in by the decoder

    @property
    def state_bytes(self) -> int:
        """Bytes of state that a handle keeps from run to run."""
        return sum(row.bytes for row in self.states)

    @property
    def call_count(self) -> int:
        """Kernel calls in one run as the header counts them: loops unrolled, calls that are clipped to no rows included."""
        return self._count_steps(Call)

    @property
    def step_count(self) -> int:
        """Kernel calls and copies executed in one run, loops unrolled by multiplying."""
        return self._count_steps(Call | Dma)

    def _count_steps(self, kind: Any) -> int:
        total = 0
        for item in self.instructions:
            times, steps = (item.iterations, item.body) if isinstance(item, Loop) else (1, (item,))
            total += times * sum(isinstance(step, kind) for step in steps)
        return total
