"""Finding microcode in any file we know: a `.pte`, a LiteRT model, a delegate's payload, or microcode alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from openneutron.compiler import kernels
from openneutron.errors import FormatError, OpenNeutronError
from openneutron.files import kind_of
from openneutron.microcode.container import Container, container_of, decode_container
from openneutron.microcode.decode import decode
from openneutron.microcode.instructions import Program
from openneutron.run.steps.neutron import ONLY_NXP

if TYPE_CHECKING:
    from openneutron.microcode.payload import Payload


@dataclass(frozen=True)
class Blocks:
    """Microcode with its weights and kernels; `alone` when the file holds microcode and nothing else.

    `attributes` are those of a LiteRT file's operator, which are for readers: microcode is what counts.
    """

    where: str
    microcode: bytes
    weights: bytes
    kernels: bytes
    container: Container
    target: str = ""
    alone: bool = False
    attributes: dict[str, int | float | bool | str] = field(default_factory=dict)

    def program(self) -> Program:
        """The decoded program; a `FormatError` when NXP's converter made it or the checksum is wrong."""
        if self.container.made_by == "nxp":
            raise FormatError("it was made by NXP's converter", where=self.where, hint=ONLY_NXP)
        kernels.rules()  # kernels declare their parameters when their files are imported
        try:
            return decode(self.microcode, self.weights, self.kernels, verify=not self.alone)
        except OpenNeutronError as error:
            raise FormatError(error.message, where=error.where or self.where, hint=error.hint) from error


def blocks_of_file(data: bytes, where: str, *, every_method: bool = False) -> list[Blocks]:
    """Every microcode block of the file, in execution order; none for a file without NeutronGraphs.

    Of an ExecuTorch program these are the blocks of `forward`; with `every_method` those of its other methods follow.
    """
    kind = kind_of(data)
    if kind == "tflite":
        return _of_litert(data, where)
    if kind == "microcode":
        return [Blocks(where, data, b"", b"", decode_container(data, where=where), alone=True)]
    if kind == "pte":
        from openneutron.microcode.payload import BACKEND_ID, parse_payload
        from openneutron.microcode.pte import FORWARD, computing_methods, read_plan
        from openneutron.microcode.seal import check_seal

        check_seal(data, where=where)
        places, blobs = list[str](), list[bytes]()
        for method in computing_methods(data, where=where) if every_method else (FORWARD,):
            payloads = read_plan(data, where=where, method=method).payloads
            own = [blob for backend, blob in payloads if backend == BACKEND_ID]
            name = where if method == FORWARD else f"{where}, {method}"
            places += [f"{name}, delegate {number}" for number in range(len(own))]
            blobs += own
        found = [parse_payload(blob, where=place) for blob, place in zip(blobs, places, strict=True)]
    elif kind in ("onnx", "zip"):
        raise FormatError(
            "this model is not compiled yet", where=where, hint=f"compile it: `openneutron compile {where}`"
        )
    else:
        places, found = [where], [_payload(data, where)]
    return [
        Blocks(
            place,
            payload.microcode,
            payload.weights,
            payload.kernels,
            decode_container(payload.microcode, profiling=payload.profiling, where=where),
            payload.target,
        )
        for place, payload in zip(places, found, strict=True)
    ]


def _of_litert(data: bytes, where: str) -> list[Blocks]:
    from openneutron.litert.flexbuffer import read_map
    from openneutron.litert.read import read_model
    from openneutron.microcode.graph_op import blocks_of, is_graph_op

    graph = read_model(data, source=where).main
    found: list[Blocks] = []
    for position, op in enumerate(graph.operators):
        if is_graph_op(op):
            place = f"{where}, operator {position}"
            blocks = blocks_of(graph, op, outputs=len(op.outputs), where=place)
            container = container_of(graph, op, where=place)
            attributes = read_map(op.custom_options)
            found.append(
                Blocks(place, blocks.microcode, blocks.weights, blocks.kernels, container, attributes=attributes)
            )
    return found


def _payload(data: bytes, where: str) -> Payload:
    from openneutron.microcode.payload import parse_payload

    try:
        return parse_payload(data, where=where)
    except FormatError as error:
        raise FormatError(
            "this is no .pte, no .tflite, no Neutron payload and no microcode",
            where=where,
            hint=f"read as a payload: {error.message}",
        ) from error
