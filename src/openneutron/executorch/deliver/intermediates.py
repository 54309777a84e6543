"""Write the intermediate results of a compile to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from openneutron.files import write_file

if TYPE_CHECKING:
    from openneutron.executorch.deliver.backend import Partition


def write_intermediates(folder: str, partition: Partition) -> None:
    """Write the LiteRT models, dumps, disassembly and report of one partition; each file whole or not at all."""
    for name, content in partition.files().items():
        write_file(Path(folder) / name, content)
