"""Where the native libraries are: in the package's `lib` folder, for a checkout and an installed wheel alike.

Example:
    >>> library_path().name
    'libopenneutron.so'
"""

from __future__ import annotations

import sys
from pathlib import Path

from openneutron.errors import OpenNeutronError

_FOLDER = Path(__file__).parents[1] / "lib"


def library_path() -> Path:
    """Return the path of `libopenneutron.so` (macOS: `.dylib`): driver, firmware kernels and cycle model, without ExecuTorch.

    Raises OpenNeutronError when it has not been built.
    """
    return _find_built(
        "libopenneutron", hint="install a wheel of this platform, or run `make setup` in the project's root"
    )


def delegate_path() -> Path:
    """Return the path of `libopenneutron_delegate.so`, the ExecuTorch backend.

    Load it after executorch's own runtime: it links `libexecutorch.so` by name only, so that the copy already in the
    process, which holds the backend registry, is the one it registers with. Raises OpenNeutronError when it has not
    been built.
    """
    return _find_built(
        "libopenneutron_delegate",
        hint="run `make setup` in the project's root; it is built where the executorch wheel is installed",
    )


def litert_delegate() -> str:
    """Return the path of `libopenneutron_litert.so`, which runs NeutronGraph operators in LiteRT's own interpreter.

    Example:
        >>> delegate = load_delegate(openneutron.litert_delegate())
        >>> interpreter = Interpreter("compiled.tflite", experimental_delegates=[delegate])

    Raises OpenNeutronError when it has not been built.
    """
    return str(_find_built("libopenneutron_litert", hint="run `make setup` in the project's root"))


def delegate_built_for() -> str:
    """The minor version of ExecuTorch that the delegate was built for, such as "1.5"; "" when nothing says so."""
    try:
        return (_FOLDER / "executorch.txt").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _find_built(stem: str, *, hint: str) -> Path:
    if sys.platform == "win32":
        raise OpenNeutronError(
            "OpenNeutron's native runtime is not built for Windows", hint="use it in WSL, on Linux or on macOS"
        )
    path = _FOLDER / f"{stem}{'.dylib' if sys.platform == 'darwin' else '.so'}"
    if not path.is_file():
        raise OpenNeutronError(f"the native library {path.name} is not built", where=str(_FOLDER), hint=hint)
    return path
