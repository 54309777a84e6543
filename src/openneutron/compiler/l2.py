"""L2, the task list: kernel calls on row stripes, copies and waits, over buffers with offsets and lifetimes.

Schedules, allocation, `verify` and the report's timeline use L2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from openneutron.microcode.table import ElementType, Region


@dataclass
class Buffer:
    """Bytes in one region. Scratch buffers get their `offset` from the allocator; `first`/`last` are positions in time.

    `value` is the L1 value held (or -1: workspace, weights). A ring holds some of the value's rows, a whole tensor all.
    """

    name: str
    region: Region
    size: int
    value: int = -1
    index: int = 0
    offset: int = -1
    first: int = -1
    last: int = -1


class Operand(NamedTuple):
    """A kernel's view of a buffer: `offset` is relative to the buffer; other fields as in the microcode's operand."""

    buffer: int
    offset: int
    plane: int
    pitch: int
    pixel: int
    ring: int
    batch: int
    height: int
    width: int
    channels: int
    dtype: ElementType


@dataclass(frozen=True)
class Call:
    """Run the kernel of L1 node `node` on output rows [first_row, first_row + rows), advanced by `row_step` per loop."""

    node: int
    operands: tuple[Operand | None, ...]
    first_row: int
    rows: int
    row_step: int = 0


@dataclass(frozen=True)
class Dma:
    """Start a copy from one buffer to another on a channel."""

    channel: int
    source: int
    source_offset: int
    target: int
    target_offset: int
    bytes: int


@dataclass(frozen=True)
class Wait:
    """Wait until the channel's copies are complete."""

    channel: int


Step: TypeAlias = Call | Dma | Wait


@dataclass(frozen=True)
class Loop:
    """Repeat `body`; calls advance by their row_step. Loops do not nest."""

    iterations: int
    body: tuple[Step, ...]


Task: TypeAlias = Call | Dma | Wait | Loop


class Overlap(NamedTuple):
    """A segment's input `dying` and its output `born` may share bytes: no row is written before those it covers are dead.

    Rows made from the top down: the output starts at least `distance` bytes below the input. From the bottom up (`upward`):
    it ends at least `distance` bytes above the input's end. `exact` also allows equal offsets (element-wise in place).
    """

    dying: int
    born: int
    distance: int
    exact: bool
    upward: bool = False


@dataclass
class TaskList:
    """The whole of L2 for one NeutronGraph. `weights` is the constant block that WEIGHTS buffers point into."""

    buffers: list[Buffer] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    overlaps: list[Overlap] = field(default_factory=list)
    weights: bytes = b""
    scratch_bytes: int = 0
    prefetch_bytes: int = 0
    tcm_bytes: int = 0
    lower_bound: int = 0  # largest sum of live bytes: reaching it proves the allocation optimal
    solver_version: tuple[int, int, int] = (0, 0, 0)

    @property
    def held_bytes(self) -> int:
        """Bytes that a run needs beside inputs, outputs and weights."""
        return self.scratch_bytes + self.prefetch_bytes + self.tcm_bytes
