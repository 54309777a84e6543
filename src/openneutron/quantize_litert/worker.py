"""Main function of the quantizing process: `python -m openneutron.quantize_litert.worker DESCRIPTOR FOLDER`.

It takes a float model and its samples from a socket, then requests to quantize them, and gives quantized models back. It may
write to FOLDER only. A crash of LiteRT ends here; what it says on stderr is noise but for the last line of a failure.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import socket
import sys
from typing import Any

from openneutron.litert.write import write_model
from openneutron.quantize_litert.float_model import FloatModel
from openneutron.quantize_litert.methods import Methods
from openneutron.run import wire
from openneutron.sandbox.restrictions import Restrictions, restrict

_MEMORY, _FILE = 8 << 30, 1 << 30  # bytes it may take and write; the quantizer holds a model several times


def main(descriptor: int) -> None:
    """Answer requests until the other side closes the connection."""
    with socket.socket(fileno=descriptor) as connection:
        model: FloatModel | None = None
        while (message := wire.receive(connection)) is not None:
            header, payload = message
            if model is None:
                size = header["model"]
                columns = wire.unpack(header["samples"], payload[size:])
                model = FloatModel(payload[:size], list(zip(*columns, strict=True)))
                wire.send(connection, {})
            else:
                answer, data = _serve(model, header)
                wire.send(connection, answer, data)


def _serve(model: FloatModel, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Quantize as a request says; measure the noise of each tensor, or search for methods, where it asks for that."""
    methods, tried = Methods.of(request["methods"]), 0
    if request["do"] == "noise":
        tensors, noise = model.noise(methods, [tuple(one) for one in request["parts"]])
        ends = [[sorted(one.makers), sorted(one.readers), one.elements] for one in tensors]
        return {"tensors": ends, "alone": noise.alone.tolist(), "floor": noise.floor.tolist()}, b""
    if request["do"] == "search":
        methods, tried = model.search(request["goal"])
    made = model.quantize(request["activations"], request["wide"], methods)
    answer = {
        "outputs": [dataclasses.asdict(one) for one in model.compare(made)] if request["compare"] else [],
        "made_by": f"ai-edge-quantizer {importlib.metadata.version('ai-edge-quantizer')}",
        "methods": dataclasses.asdict(methods),
        "tried": tried,
    }
    return answer, write_model(made)


if __name__ == "__main__":
    try:
        restrict(Restrictions(_MEMORY, file_bytes=_FILE, writable=(sys.argv[2],)))
        main(int(sys.argv[1]))
    except Exception as error:
        print(f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}", file=sys.stderr)
        sys.exit(1)
