"""Main function of the LiteRT process: `python -m openneutron.run.litert_worker DESCRIPTOR`.

It takes models and inputs from a socket and gives outputs back, under limits of memory and time, without network and without
files. A crash, a loop without end or code that a model smuggles in ends here.
"""

from __future__ import annotations

import socket
import sys
from typing import Any

from openneutron.sandbox.restrictions import Restrictions, restrict

_MOST_FILE = 1 << 20  # of what LiteRT writes to the log
_SPARE_SECONDS = 5  # our parent counts the time; this ends the process where the parent died


def main(descriptor: int, memory: int) -> None:
    """Answer requests until the other side closes the connection."""
    restrict(Restrictions(memory=memory, file_bytes=_MOST_FILE))
    from openneutron.run.wire import receive, send

    interpreters: dict[int, Any] = {}
    with socket.socket(fileno=descriptor) as connection:
        while (message := receive(connection)) is not None:
            header, payload = message
            try:
                answer, data = _serve(interpreters, header, payload)
            except (RuntimeError, ValueError, ImportError, MemoryError) as error:
                answer, data = {"error": type(error).__name__, "text": str(error)[:4000]}, b""
            send(connection, answer, data)


def _serve(interpreters: dict[int, Any], header: dict[str, Any], payload: bytes) -> tuple[dict[str, Any], bytes]:
    from openneutron.run.wire import pack, unpack

    number = header["model"]
    _allow_seconds(header.get("seconds", 0))
    if header["do"] == "load":
        interpreters[number] = _interpreter(payload, header["reference"])
    elif header["do"] == "drop":
        interpreters.pop(number, None)
    else:
        interpreter = interpreters[number]
        for detail, value in zip(interpreter.get_input_details(), unpack(header["arrays"], payload), strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        arrays, data = pack([interpreter.get_tensor(one["index"]) for one in interpreter.get_output_details()])
        return {"arrays": arrays}, data
    return {}, b""


def _interpreter(data: bytes, reference: bool) -> Any:
    """Create an interpreter with allocated tensors: one thread, no delegates."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kernels = OpResolverType.BUILTIN_REF if reference else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    made = Interpreter(model_content=data, num_threads=1, experimental_op_resolver_type=kernels)
    made.allocate_tensors()
    return made


def _allow_seconds(seconds: int) -> None:
    """Limit the processor time to `seconds` more than were used so far."""
    if seconds and sys.platform != "win32":
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        soft = int(used.ru_utime + used.ru_stime) + seconds + _SPARE_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
