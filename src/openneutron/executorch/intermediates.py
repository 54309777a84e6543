"""Writing what a compile passed through, for people who look inside."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from openneutron.errors import OpenNeutronError
from openneutron.report.model import to_json

if TYPE_CHECKING:
    from openneutron.executorch.backend import Partition


def write_intermediates(folder: str, partition: Partition, dumps: dict[str, str]) -> list[Path]:
    """Write the LiteRT models, dumps, disassembly and report of one partition; each file appears whole or not at all."""
    stem = f"partition_{partition.index}"
    files: dict[str, bytes] = {
        f"{stem}.tflite": partition.litert,
        f"{stem}_converted.tflite": partition.converted,
        f"{stem}_report.json": to_json(partition.report).encode(),
    }
    files.update({f"{stem}_{name}": text.encode() for name, text in dumps.items()})
    if partition.log:
        files[f"{stem}.log"] = partition.log.encode()
    if partition.kernel_selection_code:
        files[f"{stem}_kernel_selection.c"] = partition.kernel_selection_code.encode()
    return [_write(Path(folder) / name, data) for name, data in files.items()]


def _write(path: Path, data: bytes) -> Path:
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.replace(temporary, path)
    except OSError as error:
        raise OpenNeutronError(
            f"cannot write {path.name}: {error.strerror}", where=f"intermediates_dir {path.parent}"
        ) from error
    return path
