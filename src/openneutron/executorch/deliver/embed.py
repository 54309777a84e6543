"""A payload as C source, for applications that have no ExecuTorch: the bytes, and every size that static memory needs.

Example:
    >>> made = embed(payload, name="model", header="model.h", where="model.pte")
    >>> Path("model.c").write_text(made.source), Path("model.h").write_text(made.header)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.compiler import kernels
from openneutron.errors import FormatError, OptionError
from openneutron.executorch.deliver import linked
from openneutron.litert.graph import DType, Quantization, Tensor
from openneutron.machine.simulator import DTYPES
from openneutron.machine.window import least_window
from openneutron.microcode.container import decode_container
from openneutron.microcode.decode import decode, header_of, tensors_of
from openneutron.microcode.encode import layer_window_bytes
from openneutron.microcode.instructions import TensorRow
from openneutron.microcode.payload import Payload, parse_payload
from openneutron.microcode.reorder import in_argument_order, is_sorted
from openneutron.microcode.table import ALIGNMENT
from openneutron.run import given
from openneutron.terminal.escapes import comment

Array = npt.NDArray[Any]
# Words of eight hexadecimal digits that fit a line of 120 columns.
_WORDS_PER_LINE = 9


@dataclass(frozen=True)
class Border:
    """The model's names for a payload's tensors, in the order of its arguments, and notes for the header.

    `shapes` are the model's; without them those of the microcode are used.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    notes: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Embedded:
    """The two files; the source includes the header."""

    source: str
    header: str


def embed(
    data: bytes,
    *,
    name: str,
    header: str,
    where: str,
    inputs: Sequence[Array] | None = None,
    border: Border | None = None,
    sections: bool = True,
) -> Embedded:
    """C source and header of a payload; `name` begins every symbol, `header` is the name of the header's file.

    The driver takes inputs and outputs in the order of the payload's arguments, which `border` names. Microcode that has
    another order is written anew. `inputs`, in the same order, are embedded beside the payload for a self-test. Without
    `sections` the arrays are ordinary constants, for linker scripts that know no section of ours.

    Example:
        >>> embed(payload, name="model", header="model.h", where="model.pte").header.splitlines()[0]
        '/* Payload of model.pte for imxrt700; made by OpenNeutron, not to be edited. */'
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise OptionError(f"{name!r} is no name in C", hint="use letters, digits and underscores")
    kernels.rules()  # kernels declare their parameters when their files are imported
    data = in_argument_order(data, where=where)
    payload = parse_payload(data, where=where)
    border = border or numbered_border(payload)
    target = payload.target or "an unnamed target"
    title = f"/* Payload of {comment(where)} for {comment(target)}; made by OpenNeutron, not to be edited. */"
    arrays = [] if inputs is None else check_inputs(payload, inputs, where=where)
    runs = payload.converter == "open"
    includes = [f'#include "{header}"', *(['#include "neutron_linked.h"'] if runs else [])]
    lines = [title, *includes, "", *word_array(f"{name}_payload", data, section=sections)]
    for position, array in enumerate(arrays):
        lines += ["", *word_array(f"{name}_input_{position}", array.tobytes(), local=True, section=sections)]
    if arrays:
        listed = ", ".join(f"{name}_input_{position}" for position in range(len(arrays)))
        lines += ["", f"const void *const {name}_inputs[{name.upper()}_INPUTS] = {{{listed}}};"]
    if runs:
        lines += ["", *linked.definitions(name)]
    return Embedded(_text(lines), _text([title, *_header(payload, data, name, bool(arrays), border)]))


def numbered_border(payload: Payload) -> Border:
    """A border for a payload whose tensors have no names: they are named by argument number."""
    return Border(
        tuple(f"input_{place}" for place in sorted(payload.input_map)),
        tuple(f"output_{place}" for place in sorted(payload.output_map)),
    )


def check_inputs(payload: Payload, inputs: Sequence[Array], *, where: str) -> list[Array]:
    """The inputs, contiguous, when they have the types and shapes the payload's microcode declares."""
    rows = input_rows(payload, where=where)
    if len(rows) != len(inputs):
        raise OptionError(f"{len(inputs)} inputs given, the payload has {len(rows)}", where=where)
    for row, array in zip(rows, inputs, strict=True):
        wanted = np.dtype(DTYPES[row.dtype])
        if array.dtype != wanted or array.shape != row.shape:
            raise OptionError(
                f"input {row.index} is {array.dtype} {list(array.shape)}",
                where=where,
                hint=f"it must be {wanted} {list(row.shape)}, of scale {row.scale:g} and zero point {row.zero_point}",
            )
    return [np.ascontiguousarray(array) for array in inputs]


def random_inputs(payload: Payload, *, seed: int, where: str) -> list[Array]:
    """Return random inputs for a seed, of the types and shapes that the payload declares."""
    return given.random_inputs(input_tensors(payload, (), where=where), seed=seed)


def input_tensors(payload: Payload, names: Sequence[str], *, where: str) -> list[Tensor]:
    """Return the payload's inputs as LiteRT tensors; without names they are numbered."""
    return [
        Tensor(
            name,
            row.shape,
            DType(str(np.dtype(DTYPES[row.dtype]))),
            quantization=Quantization((row.scale,), (row.zero_point,)) if row.scale else None,
        )
        for name, row in zip(names or numbered_border(payload).inputs, input_rows(payload, where=where), strict=True)
    ]


def input_rows(payload: Payload, *, where: str) -> list[TensorRow]:
    """The rows of the payload's inputs in the tensor table of open microcode."""
    if payload.converter != "open":
        raise OptionError(
            "NXP's microcode does not say what its inputs are", where=where, hint="embed it without inputs"
        )
    kernels.rules()  # kernels declare their parameters when their files are imported
    program = decode(payload.microcode, payload.weights, payload.kernels)
    return [row for row in program.tensors if not row.is_output]


def _layer_bytes(blocks: tuple[bytes, bytes, bytes]) -> int:
    """Return the window with which each layer's constants are decoded once; 0 where they are plain."""
    return layer_window_bytes(decode(*blocks)) if header_of(blocks[0])["window_bytes"] else 0


def payload_sizes(payload: Payload, data: bytes) -> dict[str, int]:
    """Return the sizes of a payload that its header declares, by the names of the macros."""
    container = decode_container(payload.microcode, profiling=payload.profiling)
    offsets = _offsets(payload, data)
    blocks = payload.microcode, payload.weights, payload.kernels
    return {
        "PAYLOAD_BYTES": len(data),
        "MICROCODE_OFFSET": offsets[0],
        "MICROCODE_BYTES": len(payload.microcode),
        "WEIGHTS_OFFSET": offsets[1],
        "WEIGHTS_BYTES": len(payload.weights),
        "KERNELS_OFFSET": offsets[2],
        "KERNELS_BYTES": len(payload.kernels),
        "SCRATCH_BYTES": container.scratch_bytes,
        "PREFETCH_BYTES": container.sram_scratch_bytes,
        "PROFILE_BYTES": container.profile_bytes,
        "DEBUG_BYTES": container.debug_bytes,
        "TCM_BYTES": header_of(payload.microcode)["tcm_bytes"] if payload.converter == "open" else 0,
        "STATE_BYTES": header_of(payload.microcode)["state_bytes"] if payload.converter == "open" else 0,
        "PLAIN_BYTES": header_of(payload.microcode)["plain_bytes"] if payload.converter == "open" else 0,
        "WINDOW_BYTES": header_of(payload.microcode)["window_bytes"] if payload.converter == "open" else 0,
        "LAYER_BYTES": _layer_bytes(blocks) if payload.converter == "open" else 0,
        "BLOCK_BYTES": least_window(*blocks) if payload.converter == "open" else 0,
        "INPUTS": container.inputs,
        "OUTPUTS": container.outputs,
    }


def _header(payload: Payload, data: bytes, name: str, with_inputs: bool, border: Border) -> Iterator[str]:
    """Everything after the title line."""
    sizes = payload_sizes(payload, data)
    prefix = name.upper()
    yield from (f"#ifndef {prefix}_PAYLOAD_H", f"#define {prefix}_PAYLOAD_H", "", "#include <stdint.h>", "")
    yield from (f"#define {prefix}_{what} {value}u" for what, value in sizes.items())
    if payload.identity and all((*payload.identity.input_bytes, *payload.identity.output_bytes)):
        read, written = payload.identity.input_bytes, payload.identity.output_bytes
        yield "/* Initializers with the bytes of each input and output, and the sum with each at a multiple of 16. */"
        yield f"#define {prefix}_INPUT_BYTES {{{', '.join(map(str, read))}}}"
        yield f"#define {prefix}_OUTPUT_BYTES {{{', '.join(map(str, written))}}}"
        yield f"#define {prefix}_IO_BYTES {sum(-(-size // ALIGNMENT) * ALIGNMENT for size in (*read, *written))}u"
    yield from _border(payload, prefix, border)
    yield from ("", "#ifdef __cplusplus", 'extern "C" {', "#endif")
    if payload.converter == "open":
        yield from ("", *linked.declarations(name, sizes))
    yield from ("", f"extern const uint32_t {name}_payload[];")
    if with_inputs:
        yield f"extern const void *const {name}_inputs[{prefix}_INPUTS];"
    yield from ("", "#ifdef __cplusplus", "}", "#endif", "", "#endif")


def _border(payload: Payload, prefix: str, border: Border) -> Iterator[str]:
    """Names and shapes of inputs and outputs, one comment line each and as initializers."""
    rows: tuple[TensorRow, ...] = ()
    if payload.converter == "open":
        rows = tensors_of(payload.microcode)
    shapes = border.shapes or tuple(row.shape for row in rows)
    yield ""
    yield from (f"/* {comment(note)} */" for note in border.notes)
    sides = (
        ("input", border.inputs, payload.input_map, 0),
        ("output", border.outputs, payload.output_map, len(border.inputs)),
    )
    if not is_sorted(payload):
        yield "/* NXP's microcode keeps its own order: pointer k of the driver's inputs and outputs is that of the model's"
        yield " * input or output that these initializers name. */"
        for kind, _, places, _ in sides:
            order = sorted(places)
            yield f"#define {prefix}_{kind.upper()}_MAP {{{', '.join(str(order.index(place)) for place in places)}}}"
    for kind, names, _, first in sides:
        for position, name in enumerate(names):
            shape = f" {list(shapes[first + position])}" if shapes else ""
            yield f"/* {kind} {position}: {comment(name)},{_describe(rows, first + position)}{shape} */"
        yield f"#define {prefix}_{kind.upper()}_NAMES {{{', '.join(map(_literal, names))}}}"
    if shapes:
        yield "/* Shapes are filled up with zeros to the largest rank, the second dimension of an array of them. */"
        yield f"#define {prefix}_RANK {max([1, *map(len, shapes)])}u"
        for kind, names, _, first in sides:
            of_side = shapes[first : first + len(names)]
            yield f"#define {prefix}_{kind.upper()}_RANKS {{{', '.join(str(len(shape)) for shape in of_side)}}}"
            listed = ", ".join(f"{{{', '.join(map(str, shape or (0,)))}}}" for shape in of_side)
            yield f"#define {prefix}_{kind.upper()}_SHAPES {{{listed}}}"


def _describe(rows: Sequence[TensorRow], position: int) -> str:
    if not rows:
        return ""
    row = rows[position]
    scale = f" of scale {row.scale:g} and zero point {row.zero_point}," if row.scale else ""
    return f" {np.dtype(DTYPES[row.dtype])}{scale}"


def _literal(text: str) -> str:
    """A string of C; whatever is no plain character is written in octal, which ends after three digits."""
    plain = (chr(one) if 32 <= one < 127 and chr(one) not in '"\\?' else f"\\{one:03o}" for one in text.encode())
    return '"' + "".join(plain) + '"'


def _offsets(payload: Payload, data: bytes) -> tuple[int, int, int]:
    """Where microcode, weights and kernels begin; the header in front of them is 4 + 2 bytes per tensor."""

    def align(size: int) -> int:
        return -(-size // ALIGNMENT) * ALIGNMENT

    microcode = align(4 + 2 * (len(payload.input_map) + len(payload.output_map)))
    weights = microcode + align(len(payload.microcode))
    kernels = weights + align(len(payload.weights))
    if data[kernels : kernels + len(payload.kernels)] != payload.kernels:
        raise FormatError("the payload's blocks are not where its header puts them")
    return microcode, weights, kernels


def word_array(symbol: str, data: bytes, *, local: bool = False, section: bool = True) -> Iterator[str]:
    """Yield the lines of an aligned constant; little-endian words, because compilers read them four times faster than bytes."""
    words = np.frombuffer(data + bytes(-len(data) % ALIGNMENT), "<u4")
    linkage = "static " if local else ""
    placed = f', section(".payload.{symbol}")' if section else ""
    yield f"__attribute__((aligned({ALIGNMENT}){placed}))"
    yield f"{linkage}const uint32_t {symbol}[] = {{"
    for at in range(0, len(words), _WORDS_PER_LINE):
        yield "    " + " ".join(f"0x{word:08x}," for word in words[at : at + _WORDS_PER_LINE].tolist())
    yield "};"


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
