"""numpy computes the same without the parts that the command leaves out."""

from __future__ import annotations

import subprocess
import sys

_SCRIPT = """
import sys
from openneutron.cli.shared.lean_numpy import import_lean
if sys.argv[1] == "lean":
    import_lean()
import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
Array = npt.NDArray[np.int8] | None
numbers = np.arange(-300, 300, dtype=np.int64).reshape(20, 30)
found = [numbers.astype(np.int8).sum(0), np.unique(numbers % 7), np.cumsum(numbers), np.pad(numbers[:2, :2], 1)]
found += [np.einsum("ij,kj->ik", numbers, numbers), np.linalg.norm(numbers), np.round(numbers / 7), np.packbits(numbers > 3)]
print([np.asarray(one).tobytes().hex() for one in found])
print(len(sys.modules["numpy._core._add_newdocs"].__dict__) < 10, file=sys.stderr)
"""


def _printed(mode: str) -> tuple[str, str]:
    done = subprocess.run([sys.executable, "-c", _SCRIPT, mode], capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


def test_the_arithmetic_is_numpys_own() -> None:
    lean, whole = _printed("lean"), _printed("whole")
    assert lean[0] == whole[0]
    assert (lean[1], whole[1]) == ("True\n", "False\n")


def test_where_numpy_is_imported_nothing_is_done() -> None:
    import numpy

    from openneutron.cli.shared.lean_numpy import import_lean

    before = sys.modules["numpy._core._add_newdocs"]
    import_lean()
    assert sys.modules["numpy._core._add_newdocs"] is before and numpy.typing.NDArray[numpy.int8] is not None
