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


def write_kernel_selection(folder: str, partition: Partition) -> None:
    """Write the kernel selection of one partition, where its target has one."""
    if partition.kernel_selection_code:
        write_file(Path(folder) / partition.kernel_selection_file, partition.kernel_selection_code)
