"""The ETRecord of a program, with which ExecuTorch's Inspector relates a profile to the model's operators.

Example:
    >>> program.etrecord.save("model.etrecord")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from executorch.exir import ExecutorchProgramManager
from torch.export import ExportedProgram

if TYPE_CHECKING:
    from executorch.devtools import ETRecord


def etrecord_of(edge: ExportedProgram, written: ExecutorchProgramManager) -> ETRecord:
    """Return the record of an Edge program and of the program written from it."""
    from executorch.devtools import ETRecord

    record = ETRecord(edge_dialect_program=edge)
    record.add_executorch_program(written)
    return record
