"""numpy computes the same without the parts that the command leaves out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import openneutron

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
found += [np.einsum("ij,kj->ik", numbers, numbers), np.dot(numbers, numbers.T), np.round(numbers / 7), np.packbits(numbers > 3)]
print([np.asarray(one).tobytes().hex() for one in found])
print(len(sys.modules["numpy._core._add_newdocs"].__dict__) < 10, file=sys.stderr)
"""

# The folders of the compiler's own path, in which a name that numpy does not have here would fail only when it is used.
_COMPILING = ("board", "compiler", "litert", "machine", "microcode", "nxp", "report")
_NAMES = """
import re, sys
from pathlib import Path
from openneutron.cli.shared.lean_numpy import Absent, import_lean
import_lean()
import numpy as np
for folder in sys.argv[1:]:
    for path in sorted(Path(folder).rglob("*.py")):
        for name in re.findall(r"\\bnp\\.([a-z]\\w*)", path.read_text("utf-8")):
            if getattr(np, name) in (Absent, sys.modules["numpy.linalg"]):
                print(f"{path.name} uses np.{name}")
"""


def _printed(mode: str) -> tuple[str, str]:
    done = subprocess.run([sys.executable, "-c", _SCRIPT, mode], capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


def test_the_arithmetic_is_numpys_own() -> None:
    lean, whole = _printed("lean"), _printed("whole")
    assert lean[0] == whole[0]
    assert (lean[1], whole[1]) == ("True\n", "False\n")


def test_the_compiler_uses_nothing_that_is_left_out() -> None:
    folders = [str(Path(openneutron.__file__).parent / name) for name in _COMPILING]
    done = subprocess.run([sys.executable, "-c", _NAMES, *folders], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_what_is_left_out_says_so() -> None:
    script = (
        "from openneutron.cli.shared.lean_numpy import import_lean; import_lean(); import numpy; numpy.polyfit(0, 0, 1)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "this part of numpy is not imported" in done.stderr


def test_where_numpy_is_imported_nothing_is_done() -> None:
    import numpy

    from openneutron.cli.shared.lean_numpy import import_lean

    before = sys.modules["numpy._core._add_newdocs"]
    import_lean()
    assert sys.modules["numpy._core._add_newdocs"] is before and numpy.typing.NDArray[numpy.int8] is not None
