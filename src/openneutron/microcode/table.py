"""The microcode, version 1, as one table: every record and instruction with its fields, widths and meaning.

Encoder, decoder, disassembler, the C structs in `runtime/include/generated/` and `docs/format.md` all come from the
rows here. All values are little endian; every record is a whole number of 32-bit words with no hidden padding.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

MAGIC = 0x64434D6E  # NXP's container magic ("nMCd"): upstream's delegate checks it before anything else.
# Our own value where NXP's driver expects its version hash: silicon refuses it, our driver knows both kinds.
VERSION_WORD = 0x4F4E0001  # "ON", format version 1
FORMAT_VERSION = 1
HEADER_BYTES = 128  # 32 words: NXP's known words 0-14 keep their place, ours follow.
ALIGNMENT = 16  # payload rule of the delegate: blocks and buffers start at multiples of 16.
MAX_OPERANDS = 8  # widest kernel has six; a fixed bound lets the firmware decode without a heap.
MAX_PARAMS = 40  # 32-bit words; the widest kernel (copy, rank 6) needs 24.
NO_SOURCE = 0xFFFFFFFF  # a state whose first contents are one word repeated
MAX_ENDS = 256  # inputs, and outputs, of a graph: an operand has a byte for which one it is.
MAX_STATE_BYTES = 1 << 26  # ten times the memory of any target: what a header claims stays far from wrapping
# Of constants when they are decoded. A file asks for more than it stores, so beyond what is little enough to allocate for
# anybody it must store a share of it.
MAX_PLAIN_BYTES = (1 << 31) - ALIGNMENT
FREE_PLAIN_BYTES = 1 << 28
MAX_EXPANSION = 64  # times the stored bytes; 4-bit weights take a half of theirs
MAX_RANK = 8  # LiteRT tensors of graph I/O; upstream accepts rank < 8.


class Region(IntEnum):
    """Where an address points: region + offset is the only kind of address in microcode."""

    INPUT = 0
    OUTPUT = 1
    SCRATCH = 2
    WEIGHTS = 3
    PREFETCH = 4
    TCM = 5
    STATE = 6  # keeps its contents from run to run; every handle has its own


class Opcode(IntEnum):
    """The five instructions."""

    END = 0
    CALL = 1
    DMA = 2
    WAIT = 3
    LOOP = 4


class ElementType(IntEnum):
    """Element types of operands and of the tensor table."""

    INT8 = 0
    UINT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    FLOAT32 = 5
    BOOL = 6


class Rounding(IntEnum):
    """How a call turns an accumulator into the output's steps (docs/numerics.md, Shared primitives)."""

    NONE = 0  # the kernel does not requantize
    DOUBLE = 1  # gemmlowp: rounding doubling high multiply, then rounding shift (two roundings)
    EXACT31 = 2  # (acc * M + 2^(s-1)) >> s, M of 31 bits, proved equal to round(double(acc) * m)
    EXACT53 = 3  # round(double(acc) * m) itself, the IEEE product in integers: for factors that no M replaces
    SINGLE = 4  # (acc * M + 2^(s-1)) >> s in 64 bits, M of 16 bits: sums of 16-bit activations


class Flag(IntEnum):
    """Bits of the header's flags."""

    PROFILING = 1  # header words 9-14 follow payload version 1
    PACKED = 2  # instructions are packed words


class Storage(IntEnum):
    """How a section of the weights block is stored (docs/storage.md)."""

    RAW = 0  # as it is
    PACKED = 1  # weights without their padding
    RICE = 2  # weights without padding, in Rice codes
    STATIC = 3  # weights without padding, in the code that its lengths in front of them describe
    COLUMNS = 4  # a table of INT32 columns, in as few bits as each one's range asks
    GROUPS = 5  # as STATIC, of quotients: each group of inputs of a channel has a factor that multiplies them


class Packing(IntEnum):
    """Blocks that plain weights are padded to."""

    FLAT = 0  # none: bytes as they are
    DENSE = 1  # M output channels x N inputs
    LANES = 2  # M output channels


class SectionForm(NamedTuple):
    """What the record of a section may say: its packings, parameters from `least` to `most`, widths, and sizes above zero.

    Driver, tools and checker read this table; all that it does not name is zero.
    """

    packings: tuple[Packing, ...]
    least: int = 0
    most: int = 0
    widths: tuple[int, ...] = (0,)
    sizes: tuple[str, ...] = ()


MAX_RICE = 7  # low bits of a Rice code that are stored as they are; 8 would be the byte itself
MIN_GROUP_BITS, MAX_GROUP_BITS = 4, 7  # log2 of the inputs that share a factor: 16 to 128
MAX_FACTOR = 16  # of a group: with it a weight of 4 bits just fits 8
MAX_COLUMNS = 8  # of a table: bias, scale and zero points of the largest one
SECTION_SIZES = ("groups", "channels", "taps", "inputs")
SECTION_FORMS = {
    Storage.RAW: SectionForm((Packing.FLAT,)),
    Storage.PACKED: SectionForm(tuple(Packing), sizes=SECTION_SIZES),
    Storage.RICE: SectionForm(tuple(Packing), most=MAX_RICE, widths=(1, 2, 4), sizes=SECTION_SIZES),
    Storage.STATIC: SectionForm(tuple(Packing), widths=(1, 2, 4), sizes=SECTION_SIZES),
    Storage.COLUMNS: SectionForm((Packing.LANES,), least=1, most=MAX_COLUMNS, sizes=("channels",)),
    Storage.GROUPS: SectionForm(
        (Packing.DENSE,), least=MIN_GROUP_BITS, most=MAX_GROUP_BITS, widths=(1, 2, 4), sizes=SECTION_SIZES
    ),
}


class Field(NamedTuple):
    """One field: `kind` is u8, u16, u32, i32, or u32xN / u8xN for arrays."""

    name: str
    kind: str
    meaning: str


class Record(NamedTuple):
    """A fixed sequence of fields."""

    name: str
    fields: tuple[Field, ...]
    meaning: str


def _record(name: str, meaning: str, *rows: tuple[str, str, str]) -> Record:
    return Record(name, tuple(Field(*row) for row in rows), meaning)


HEADER = _record(
    "header",
    "First 128 bytes of the microcode block; words 0-14 keep the places of NXP's container.",
    ("magic", "u32", "0x64434D6E"),
    ("version", "u32", "0x4F4E0001 for open microcode; anything else was made by another converter"),
    ("header_bytes", "u32", "128"),
    ("flags", "u32", "bit 0: words 9-14 are laid out for profiling (payload version 1); bit 1: packed instructions"),
    ("identity_offset", "u32", "byte offset of the identity record in the microcode block"),
    ("tensors_offset", "u32", "byte offset of the tensor table"),
    ("microcode_bytes", "u32", "size of this block"),
    ("weights_bytes", "u32", "size of the weights block"),
    ("kernels_bytes", "u32", "size of the kernels block"),
    ("layout", "u32x6", "version 0: scratch, prefetch, inputs, outputs, calls, 0; "
     "version 1: scratch, profile, debug, prefetch, inputs, outputs"),
    ("tensor_count", "u32", "rows of the tensor table: inputs, then outputs"),
    ("code_offset", "u32", "byte offset of the first instruction"),
    ("code_bytes", "u32", "bytes of instructions, END included"),
    ("call_count", "u32", "CALL instructions executed in one run, loops unrolled"),
    ("tcm_bytes", "u32", "bytes of TCM used (Neutron-S)"),
    ("state_bytes", "u32", "bytes of state that a handle keeps from run to run"),
    ("states_offset", "u32", "byte offset of the state table; 0 when there is no state"),
    ("state_count", "u32", "rows of the state table"),
    ("sections_offset", "u32", "byte offset of the section table, in packed words; 0 when constants are stored plain"),
    ("section_count", "u32", "sections of the weights block"),
    ("plain_bytes", "u32", "size of region WEIGHTS when the sections are decoded; 0 when constants are stored plain"),
    ("window_bytes", "u32", "plain bytes of all coded sections that one call or copy reads, at the most"),
    ("reserved", "u32x5", "zero"),
)  # fmt: skip

IDENTITY = _record(
    "identity",
    "Who made this, for what. The checksum is CRC-32 over microcode (with this field zero), weights and kernels.",
    ("target", "u8x16", "target name, ASCII, zero-padded"),
    ("format_version", "u32", "1"),
    ("converter_version", "u32", "major << 16 | minor << 8 | patch"),
    ("solver_version", "u32", "same packing, of the solver that ordered the schedule; 0 when none was used"),
    ("checksum", "u32", "CRC-32 (IEEE 802.3)"),
    ("hw_version", "u32", "1 = N1, 2 = N3"),
    ("cores", "u32", "lock-step cores the schedule was made for"),
    ("units", "u32", "M: dot-product units; weights are packed in groups of M output channels"),
    ("length", "u32", "N: dot-product length; weights are packed in groups of N inputs"),
)

TENSOR = _record(
    "tensor",
    "One row of the tensor table: an input or output of the graph.",
    ("kind", "u8", "0 input, 1 output"),
    ("index", "u8", "position among the inputs or outputs"),
    ("dtype", "u8", "element type"),
    ("rank", "u8", "number of dimensions"),
    ("bytes", "u32", "size of the whole tensor"),
    ("zero_point", "i32", "quantization zero point"),
    ("scale", "u32", "quantization scale, float32 bits"),
    ("dims", "u32x8", "dimensions, then zeros"),
)

STATE_ROW = _record(
    "state",
    "One row of the state table: bytes of the state region and what they hold after prepare or reset. Rows follow each other "
    "without gaps from offset 0 to state_bytes.",
    ("offset", "u32", "byte offset in the state region, a multiple of 16"),
    ("bytes", "u32", "length, a multiple of 16"),
    ("source", "u32", "byte offset in the weights block of the first contents; 0xFFFFFFFF: the fill word instead"),
    ("fill", "u32", "word that the bytes are filled with where there is no source, else 0"),
)

SECTION = _record(
    "section",
    "One piece of the weights block and how it is stored, in packed words. Sections follow each other in the block, each from "
    "a multiple of 4 on, and decoded in region WEIGHTS, each from a multiple of 16 on.",
    ("storage", "u8", "RAW 0, PACKED 1, RICE 2, STATIC 3, COLUMNS 4, GROUPS 5"),
    ("packing", "u8", "FLAT 0, DENSE 1, LANES 2: what plain weights are padded to"),
    (
        "parameter",
        "u8",
        "RICE: low bits stored as they are; COLUMNS: columns; GROUPS: log2 of the inputs of a group; else 0",
    ),
    ("width", "u8", "RICE, STATIC and GROUPS: bytes of a stream's size, 1, 2 or 4; else 0"),
    ("plain", "u32", "bytes when decoded"),
    ("stored", "u32", "bytes in the weights block"),
    ("groups", "u32", "channel groups of weights; else 0"),
    ("channels", "u32", "output channels of a group, or channels of a table, without padding; RAW 0"),
    ("taps", "u32", "taps of weights; else 0"),
    ("inputs", "u32", "inputs of weights, without padding; else 0"),
)

OPERAND = _record(
    "operand",
    "A tensor, or the part of it that is held: row y of image n starts at offset + n*plane + (y mod ring)*pitch.",
    ("region", "u8", "region of the address"),
    ("index", "u8", "which input or output, else 0"),
    ("dtype", "u8", "element type"),
    ("reserved", "u8", "zero"),
    ("offset", "u32", "byte offset in the region"),
    ("plane", "u32", "bytes from one image of a batch to the next"),
    ("pitch", "u32", "bytes from one row to the next"),
    ("pixel", "u32", "bytes from one pixel to the next"),
    ("ring", "u32", "rows held; equal to height when the whole tensor is held"),
    ("batch", "u32", "images"),
    ("height", "u32", "rows of the whole tensor"),
    ("width", "u32", "pixels per row"),
    ("channels", "u32", "elements per pixel"),
)

INSTRUCTION = _record(
    "instruction",
    "The first word of every instruction.",
    ("opcode", "u8", "END 0, CALL 1, DMA 2, WAIT 3, LOOP 4"),
    ("operands", "u8", "CALL: operands that follow; else 0"),
    ("words", "u16", "length of the whole instruction in 32-bit words"),
)

CALL = _record(
    "call",
    "Run a kernel on output rows [first_row + i*row_step, … + rows) clipped to the output, in iteration i of the loop. "
    "Operands and then the kernel's own parameters (32-bit words) follow.",
    ("kernel", "u16", "kernel id"),
    ("abi", "u8", "version of the kernel's operands and parameters"),
    ("rounding", "u8", "rounding mode"),
    ("tag", "u32", "L1 node this call belongs to"),
    ("first_row", "i32", "first output row in iteration 0; may be negative while a cascade fills"),
    ("rows", "u32", "output rows per call"),
    ("row_step", "i32", "rows by which each loop iteration advances"),
)

DMA = _record(
    "dma",
    "Copy bytes from one region to another; complete after WAIT on the channel.",
    ("channel", "u8", "copy channel"),
    ("source_region", "u8", "region read"),
    ("source_index", "u8", "which input or output is read or written (one at most), else 0"),
    ("target_region", "u8", "region written (output, scratch, prefetch, TCM or state)"),
    ("source_offset", "u32", "byte offset read"),
    ("target_offset", "u32", "byte offset written"),
    ("bytes", "u32", "length"),
)

WAIT = _record("wait", "Wait for a copy channel.", ("channel", "u32", "copy channel"))

LOOP = _record(
    "loop",
    "Repeat the following body. Loops do not nest: fill and drain are the same body, calls clip their own rows.",
    ("iterations", "u32", "times the body runs"),
    ("body_words", "u32", "length of the body in 32-bit words"),
)

RECORDS = (HEADER, IDENTITY, TENSOR, STATE_ROW, SECTION, OPERAND, INSTRUCTION, CALL, DMA, WAIT, LOOP)
BODIES = {Opcode.CALL: CALL, Opcode.DMA: DMA, Opcode.WAIT: WAIT, Opcode.LOOP: LOOP}
