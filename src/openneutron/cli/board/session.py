"""A connection to a board with a model on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from openneutron.errors import OptionError
from openneutron.modelrunner.connect import EXECUTORCH, TFLM, connect

if TYPE_CHECKING:
    from openneutron.cli.board.subject import Subject
    from openneutron.modelrunner.answers import Runner


@contextmanager
def open_session(
    subject: Subject, port: str, protocol: str, baud: int, stage: Callable[[str], None]
) -> Iterator[Runner]:
    """Connect, check that this runner takes the file, upload it, and close the port at the end."""
    with connect(port, protocol=protocol, baud=baud) as runner:
        spoken = EXECUTORCH if runner.protocol.startswith("executorch") else TFLM
        asked_for = subject.payload is not None and protocol == TFLM  # the open runtime's console takes payloads too
        if spoken != subject.protocol and not asked_for:
            raise OptionError(
                f"{subject.file.name} is for the other runner, and {port} has {runner.protocol}", where=str(subject.file),
                hint="executorch_modelrunner takes .pte files and open microcode, tflm_modelrunner takes .tflite files; an "
                "image of the open runtime takes open microcode by either protocol: name it with --protocol",
            )  # fmt: skip
        stage("uploading the model")
        runner.load_model(subject.upload, stage)
        yield runner


def describe_array(value: Any) -> str:
    """Return type, shape, range and first values of an output."""
    shape = "x".join(map(str, value.shape)) or "scalar"
    if value.size == 0:
        return f"{value.dtype} {shape}"
    first = ", ".join(f"{one:.6g}" if value.dtype.kind == "f" else str(one) for one in value.reshape(-1)[:8])
    more = ", ..." if value.size > 8 else ""
    return f"{value.dtype} {shape}, {value.min():.6g} to {value.max():.6g}: {first}{more}"
