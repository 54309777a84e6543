"""The payload in any compiled file: a delegate's own, or one made of a LiteRT file's NeutronGraph.

Example:
    >>> where, payload = payload_of_file(Path("out.tflite").read_bytes(), "out.tflite", None)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.cli.inputs.blocks import Blocks, blocks_of_file
from openneutron.cli.inputs.border import GraphBorder, borders_of_file
from openneutron.errors import OptionError
from openneutron.files import kind_of
from openneutron.microcode.payload import FORMATLESS, build_payload, delegate_blobs, parse_payload
from openneutron.microcode.seal import check_seal

if TYPE_CHECKING:
    from openneutron.executorch.deliver.embed import Border


def payload_of_file(data: bytes, where: str, delegate: int | None) -> tuple[str, bytes]:
    """Return the payload's place, for messages, and its bytes; a NeutronGraph of a LiteRT file is packed into one first."""
    return bordered_payload(data, where, delegate)[:2]


def bordered_payload(data: bytes, where: str, delegate: int | None) -> tuple[str, bytes, Border | None]:
    """As `payload_of_file`, with the names of its inputs and outputs where the file has some."""
    kind = kind_of(data)
    found: list[tuple[str, bytes, Border | None]]
    if kind == "pte":
        found = [(f"{where}, delegate {at}", blob, None) for at, blob in enumerate(_of_pte(data, where))]
    elif kind == "tflite":
        found = [
            (blocks.where, _make_payload(blocks, border), named_border(border))
            for blocks, border in zip(blocks_of_file(data, where), borders_of_file(data, where), strict=True)
        ]
    else:
        parse_payload(data, where=where)
        found = [(where, data, None)]
    if not found:
        raise OptionError("the file holds no Neutron delegate", where=where, hint="compile it: `openneutron compile`")
    if delegate is None and len(found) > 1:
        raise OptionError(
            f"the file has {len(found)} delegates", where=where, hint="choose one with --delegate 0, 1, ..."
        )
    if not 0 <= (delegate or 0) < len(found):
        raise OptionError(f"there is no delegate {delegate}, the file has {len(found)}", where=where)
    return found[delegate or 0]


def _of_pte(data: bytes, where: str) -> list[bytes]:
    check_seal(data, where=where)
    blobs = delegate_blobs(data, where=where)
    for at, blob in enumerate(blobs):
        parse_payload(blob, where=f"{where}, delegate {at}")
    return blobs


def named_border(border: GraphBorder) -> Border:
    """The names of a NeutronGraph's tensors in the model's order."""
    from openneutron.executorch.deliver.embed import Border

    inputs, outputs = (
        [tensors[places.index(at)] for at in range(len(places))]
        for tensors, places in ((border.inputs, border.input_places), (border.outputs, border.output_places))
    )
    shapes = tuple(tensor.shape for tensor in (*inputs, *outputs))
    return Border(tuple(t.name for t in inputs), tuple(t.name for t in outputs), border.notes, shapes)


def _make_payload(blocks: Blocks, border: GraphBorder) -> bytes:
    """The payload of a NeutronGraph: its arguments are its inputs and outputs in the model's order, as they lie in memory."""
    container = blocks.container
    target, version = "", ""
    if container.made_by == "open":
        program = blocks.program()
        target, version = program.target, ".".join(map(str, program.converter_version))
    inputs, outputs = border.input_places, border.output_places
    sizes = [tensor.nbytes for tensor in (*border.inputs, *border.outputs)]
    return build_payload(
        blocks.microcode, blocks.weights, blocks.kernels,
        [FORMATLESS] * len(inputs), [FORMATLESS] * len(outputs), inputs, outputs, len(inputs),
        1 if container.profiling else 0, target, container.made_by, version, sizes,
    )  # fmt: skip
